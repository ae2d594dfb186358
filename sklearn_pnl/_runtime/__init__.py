"""What work needs beside mathematics: blocks, threads, memory, checks."""
