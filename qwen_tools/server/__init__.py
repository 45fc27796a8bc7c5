"""An HTTP server for one local model: OpenAI's and Anthropic's formats outside, raw tags inside.

``app`` has the routes, ``gate`` who may use them, ``host`` what this machine is called, ``body`` how a request is
read, ``inert`` what may stand in one, ``errors`` what a refusal looks like; ``queue`` says whose turn it is,
``answer`` how a request is put to the model, ``forms`` what becomes of the answer; ``description`` has the routes
for programs, ``page/`` is the chat in the browser.
The chat formats themselves are in ``wire``. Tools are never executed here.
"""
