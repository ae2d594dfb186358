"""How long the work takes and how much memory it needs; see ``README.md`` here."""
