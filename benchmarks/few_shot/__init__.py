"""Few labelled rows of data with structure: does adding rows help?"""
