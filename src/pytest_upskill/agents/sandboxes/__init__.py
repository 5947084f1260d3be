"""Sandboxes: bubblewrap, containers, or nothing at all behind one port."""
