"""The screen of wltui, and its command line. Importing it imports neither Textual nor simcore."""
