"""The saved sessions in the user's state directory: what they hold, and how they are read and written.

`session_content` is what a file holds, `files` puts it on the disk, `keeper` connects both to a running app.
Each screen owns its part: `ScreenView.saved` and `restore`, and a reader in `session_content.READERS`.
"""
