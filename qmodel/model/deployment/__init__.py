"""The model of a deployment: N stores, and the routing of operations to them."""
