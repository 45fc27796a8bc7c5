"""Raw-prompt tool calling with local open-weight models."""
