"""Commands for guards and those who rule over them."""
