"""Parts of a page that need no script: its head, who took part, bars of bytes, boxes of clients, decisions."""
