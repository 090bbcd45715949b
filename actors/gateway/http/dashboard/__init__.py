"""The page to look at: what a running set does, and did at any point of its log.

``static`` holds it as a browser takes it; nothing is built, and nothing comes from a foreign host. The files hold no
secret. What they show comes from ``/api``, which takes a key with the scope ``read`` where there are keys: the page
asks for it.
"""

PAGE = "/dashboard"
"""Where the page is."""
