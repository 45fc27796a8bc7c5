"""The questions of the program's main job, in ten wordings each, asked with its six built-in tools.

A row: what the answer must contain (``{clock}``: the clock's own string; None: any text without a call), and the
questions.
"""

ROWS: dict[str, tuple[str | None, list[str]]] = {
    "37 * 492": ("18204", [
        "What is 37 * 492?", "Calculate 37 times 492.", "How much is 37 x 492?", "What's 37 multiplied by 492?", "37*492=?",
        "Please compute the product of 37 and 492.", "Multiply 37 by 492.", "what is 37 × 492", "37 乘以 492 等于多少？",
        "Could you work out 37 * 492 for me?",
    ]),
    "square root of 7744": ("88", [
        "What is the square root of 7744?", "sqrt of 7744?", "Find the square root of 7744.", "Calculate the square root of 7744",
        "7744的平方根是多少？", "What's √7744?", "Tell me the square root of 7744 please.", "Compute sqrt(7744)",
        "Which number is the square root of 7744?", "I need the square root of 7744.",
    ]),
    "the time": ("{clock}", [
        "What time is it right now?", "What time is it?", "Tell me the current time.", "现在几点了？", "Do you know what time it is?",
        "Can you tell me the time?", "what's the time now", "What is the current date and time?", "Give me the current time please.", "几点了？",
    ]),
    "two square roots": ("10.8187", [
        "31.415926 的平方根 加上 27.1828 的平方根等于多少？", "31.415926的平方根与27.1828的平方根之和是多少？",
        "What is sqrt(31.415926) + sqrt(27.1828)?", "What is the square root of 31.415926 plus the square root of 27.1828?",
        "计算 31.415926 的平方根加 27.1828 的平方根", "Add the square root of 31.415926 and the square root of 27.1828.",
        "请问31.415926的平方根加27.1828的平方根是多少", "Compute the sum of the square roots of 31.415926 and 27.1828.",
        "√31.415926 + √27.1828 = ?", "求31.415926和27.1828的平方根之和",
    ]),
    "greetings": (None, [
        "Hello, who are you?", "Hi!", "Who are you?", "你好，你是谁？", "Hello! What is your name?", "Good morning, who am I talking to?",
        "Tell me about yourself.", "Hey there", "Introduce yourself please.", "Are you a robot?",
    ]),
    "JSON and code": (None, [
        "Write a JSON example of a person", "Write a Python function that adds two numbers", "Give me a JSON example of a person.",
        "write a python function to add two numbers", "Show me Python code that adds two numbers.",
        "Write a function in Python which adds two numbers and returns the sum.", "Give an example JSON object describing a person",
        "Can you write a JSON document for a person?", "Write Python: a function add(a, b).", "Write a JavaScript function that adds two numbers",
    ]),
}  # fmt: skip
