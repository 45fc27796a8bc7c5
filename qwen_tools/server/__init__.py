"""An HTTP server for one local model: OpenAI's and Anthropic's formats outside, raw tags inside.

``app`` has the routes, ``gate`` who may use them, ``body`` how a request is read, ``errors`` what a refusal looks like,
``answer`` how a request is put to the model, ``queue`` whose turn it is, ``completions`` the one format that has no messages,
``description`` the routes for programs, ``page/`` the chat in the browser. The formats themselves are in ``wire``.
Tools are never executed here.
"""
