"""The state room: what is kept of a session in the user's state directory, and how it is read and written.

`stored` is what a file holds, `files` puts it on the disk, `keeper` ties both to a running app. Each
screen owns its part: `ScreenView.saved` and `restore`, and a reader in `stored.READERS`.
"""
