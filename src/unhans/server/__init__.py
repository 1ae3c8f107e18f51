"""The web application around a workspace: `make_app`."""
