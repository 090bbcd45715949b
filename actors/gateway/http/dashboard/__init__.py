"""The dashboard: a page that shows what a running set does, and what it did at any point of its log.

``static`` holds the files as the browser gets them; there is no build step, and nothing is loaded from a foreign host.
The files hold no secret. Their data comes from ``/api``, which requires a key with the scope ``read`` if there are
keys; the page asks the user for it.
"""

PAGE = "/dashboard"
"""The path of the page."""
