"""The gateway between agents in sandboxes and their models.

Every trial has an endpoint of its own (``endpoint.py``, over ``http.py``).
What is listed (``door.py``, and by each protocol) goes through it
(``forwarding.py``), is understood by its protocol (``*_protocol.py``) and kept
(``request_log.py``).
"""
