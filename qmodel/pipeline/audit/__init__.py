"""Execute archived journals again on the model, and report differences."""
