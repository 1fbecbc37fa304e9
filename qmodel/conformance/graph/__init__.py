"""The closed graph: every state that the model can reach in a small scope, and every operation in each of them."""
