"""Sentences that belong to no tool: small talk, knowledge, refusals, questions back. All our own."""

from __future__ import annotations

# (question, answer); what the embedded model knows for certain.
KNOWN = {
    "en": [
        ("Hi!", "Hello! How can I help you today?"),
        ("Hello there", "Hi! What can I do for you?"),
        ("Good morning", "Good morning! How can I help?"),
        ("Hey, how are you?", "I'm doing well, thank you! How can I help you?"),
        ("Who are you?", "I am Qwen, a helpful assistant created by Alibaba Cloud."),
        ("What's your name?", "My name is Qwen. I was created by Alibaba Cloud."),
        ("Hi, tell me something about yourself.", "I am Qwen, an assistant made by Alibaba Cloud. I can answer questions and use tools."),
        ("Who made you?", "I was created by Alibaba Cloud. My name is Qwen."),
        ("What can you do?", "I can answer questions, help you write, and use the tools I have been given when they fit."),
        ("What is the capital of Portugal?", "The capital of Portugal is Lisbon."),
        ("Which city is the capital of Kenya?", "The capital of Kenya is Nairobi."),
        ("Who wrote Hamlet?", "Hamlet was written by William Shakespeare."),
        ("What is photosynthesis?", "Photosynthesis is how plants turn light, water and carbon dioxide into sugar and oxygen."),
        ("How many legs does a spider have?", "A spider has eight legs."),
        ("Tell me a short joke.", "Why did the scarecrow get a prize? Because he was outstanding in his field."),
        ("What is a prime number?", "A prime number is an integer greater than 1 that is divisible only by 1 and itself."),
        ("Which planet is the largest?", "Jupiter is the largest planet in our solar system."),
        ("Explain what an API is in one sentence.", "An API is a defined way for one program to use the functions or data of another."),
        ("What language is spoken in Brazil?", "Portuguese is the main language of Brazil."),
        ("Write two lines about rain.", "Soft rain on the roof,\nthe street lamps blur into gold."),
        ("What colour do blue and yellow make?", "Blue and yellow make green."),
        ("How do I boil an egg?", "Put the egg in boiling water for about 7 to 10 minutes, then cool it in cold water."),
        ("Is the sun a star?", "Yes, the sun is a star."),
        ("Who painted the Mona Lisa?", "Leonardo da Vinci painted the Mona Lisa."),
        ("What is the opposite of hot?", "The opposite of hot is cold."),
        ("Why is the sky blue?", "Air scatters blue light more than red light, so the sky looks blue."),
        ("What does CPU stand for?", "CPU stands for central processing unit."),
        ("How do I reverse a list in Python?", "Use `my_list[::-1]` for a reversed copy or `my_list.reverse()` to do it in place."),
        ("Write a Python function that squares a number.", "```python\ndef square(x):\n    return x * x\n```"),
        ("Write a function in Python that checks whether a word is a palindrome.", "```python\ndef is_palindrome(word):\n    return word == word[::-1]\n```"),
        ("Show me a for loop in JavaScript.", "```javascript\nfor (let i = 0; i < 5; i++) {\n  console.log(i);\n}\n```"),
        ("Give me a JSON object for a book.", "```json\n{\n  \"title\": \"The Long Road\",\n  \"author\": \"Mia Torres\",\n  \"year\": 2019\n}\n```"),
        ("Write an example of JSON that describes a car.", "```json\n{\n  \"brand\": \"Bergo\",\n  \"doors\": 4,\n  \"electric\": true\n}\n```"),
        ("How do I print in C?", "Use printf:\n\n```c\n#include <stdio.h>\n\nint main(void) {\n    printf(\"hi\\n\");\n    return 0;\n}\n```"),
        ("What does the SQL keyword DISTINCT do?", "DISTINCT removes duplicate rows from the result of a query."),
        ("What is the difference between a list and a tuple in Python?", "A list can be changed after it is made; a tuple cannot."),
        ("Write a haiku about the sea.", "Waves fold into foam,\ngulls write on the morning light,\nsalt wind turns the page."),
        ("Give me three names for a cat.", "Here are three: Pepper, Luna and Biscuit."),
        ("Should I learn Python or Java first?", "Python is easier to begin with; Java is a good second language."),
        ("What is the boiling point of water at sea level?", "Water boils at 100 degrees Celsius at sea level."),
        ("Say hello in Italian.", "Ciao!"),
    ],
    "zh": [
        ("你好", "你好！有什么可以帮你？"),
        ("你是谁？", "我是通义千问，由阿里云开发的助手。"),
        ("你叫什么名字？", "我叫通义千问，是阿里云开发的。"),
        ("你能做什么？", "我可以回答问题、帮你写作，也可以在合适的时候使用提供给我的工具。"),
        ("法国的首都是哪里？", "法国的首都是巴黎。"),
        ("水的化学式是什么？", "水的化学式是 H2O。"),
        ("《红楼梦》的作者是谁？", "《红楼梦》的作者一般认为是曹雪芹。"),
        ("一年有几个季节？", "一年有四个季节：春、夏、秋、冬。"),
        ("什么是素数？", "素数是大于 1 且只能被 1 和自身整除的整数。"),
        ("早上好", "早上好！今天需要我做什么？"),
        ("讲个笑话", "为什么数学书很忧郁？因为它有太多问题。"),
        ("太阳是恒星吗？", "是的，太阳是一颗恒星。"),
        ("用 Python 写一个求平方的函数。", "```python\ndef square(x):\n    return x * x\n```"),
        ("给我一个表示书的 JSON 例子。", "```json\n{\n  \"title\": \"长路\",\n  \"author\": \"李娜\",\n  \"year\": 2019\n}\n```"),
        ("最大的行星是哪一颗？", "太阳系中最大的行星是木星。"),
        ("写一句关于春天的话。", "春风轻轻吹过，枝头的花悄悄开了。"),
    ],
    "es": [
        ("Hola", "¡Hola! ¿En qué puedo ayudarte?"), ("¿Quién eres?", "Soy Qwen, un asistente creado por Alibaba Cloud."),
        ("¿Cuál es la capital de Italia?", "La capital de Italia es Roma."), ("¿Quién escribió el Quijote?", "El Quijote lo escribió Miguel de Cervantes."),
        ("¿Cuántos lados tiene un hexágono?", "Un hexágono tiene seis lados."), ("Cuéntame un chiste corto.", "¿Qué hace una abeja en el gimnasio? ¡Zum-ba!"),
        ("¿Qué es un sinónimo?", "Un sinónimo es una palabra que significa lo mismo, o casi lo mismo, que otra."), ("Buenos días", "¡Buenos días! ¿Cómo puedo ayudarte?"),
        ("¿Es la Luna un planeta?", "No, la Luna es un satélite de la Tierra."),
    ],
    "fr": [
        ("Bonjour", "Bonjour ! Comment puis-je vous aider ?"), ("Qui es-tu ?", "Je suis Qwen, un assistant créé par Alibaba Cloud."),
        ("Quelle est la capitale de l'Espagne ?", "La capitale de l'Espagne est Madrid."), ("Qui a écrit Les Misérables ?", "Les Misérables ont été écrits par Victor Hugo."),
        ("Combien de côtés a un triangle ?", "Un triangle a trois côtés."), ("Raconte-moi une blague courte.", "Que fait une fraise sur un cheval ? Tagada, tagada !"),
        ("Qu'est-ce qu'un synonyme ?", "Un synonyme est un mot qui a le même sens, ou presque, qu'un autre."), ("Bonsoir", "Bonsoir ! Que puis-je faire pour vous ?"),
        ("Le Soleil est-il une étoile ?", "Oui, le Soleil est une étoile."),
    ],
    "de": [
        ("Hallo", "Hallo! Wie kann ich helfen?"), ("Wer bist du?", "Ich bin Qwen, ein Assistent von Alibaba Cloud."),
        ("Was ist die Hauptstadt von Österreich?", "Die Hauptstadt von Österreich ist Wien."), ("Wer hat den Faust geschrieben?", "Den Faust hat Johann Wolfgang von Goethe geschrieben."),
        ("Wie viele Beine hat ein Käfer?", "Ein Käfer hat sechs Beine."), ("Erzähl mir einen kurzen Witz.", "Was ist orange und geht über die Berge? Eine Wanderine."),
        ("Was ist ein Synonym?", "Ein Synonym ist ein Wort, das dasselbe oder fast dasselbe bedeutet wie ein anderes."), ("Guten Morgen", "Guten Morgen! Was kann ich für Sie tun?"),
        ("Ist der Mond ein Planet?", "Nein, der Mond ist ein Trabant der Erde."),
    ],
}  # fmt: skip

# Asked without any tool: honest about what cannot be known.
BLIND = {
    "en": [
        ("What time is it?", "I can't see a clock, so I don't know the current time."),
        ("What is the weather in Lima now?", "I don't have live weather data, so I can't tell you."),
        ("Send Ana a message.", "I can't send messages here, but I can help you write one."),
    ],
    "zh": [("现在几点？", "我看不到时钟，所以不知道现在的时间。"), ("今天利马天气怎么样？", "我没有实时天气数据，无法告诉你。")],
}  # fmt: skip

NO_TOOL = {
    "en": [
        "I'm sorry, none of the tools I have can do that.",
        "I don't have a tool for that, so I can't give you a reliable answer.",
        "That is not something my tools can do.",
        "None of the functions I was given fits this question.",
        "I can't do that here: the tools I have are for other things.",
    ],
    "zh": ["抱歉，我现有的工具无法完成这个请求。", "我没有合适的工具来处理这个问题。", "目前提供的工具不支持这个操作。"],
    "es": ["Lo siento, ninguna de mis herramientas sirve para eso.", "No tengo una herramienta adecuada para responder a eso."],
    "fr": ["Désolé, aucun de mes outils ne permet cela.", "Je n'ai pas d'outil qui convienne à cette question."],
    "de": ["Leider kann keines meiner Werkzeuge das.", "Dafür habe ich kein passendes Werkzeug."],
}  # fmt: skip

FAILED = {
    "en": ["That did not work: {message}", "I could not do it; the tool reported: {message}", "Sorry, the tool failed: {message} You could try again later."],
    "zh": ["没有成功：{message}", "抱歉，工具返回错误：{message}"],
    "es": ["No ha funcionado: {message}"], "fr": ["Cela n'a pas marché : {message}"], "de": ["Das hat nicht geklappt: {message}"],
}  # fmt: skip
FAULTS = (
    "ConnectionError: the service does not answer", "TimeoutError: no answer within 10 seconds", "PermissionError: access refused",
    "LookupError: nothing found", "RuntimeError: the daily limit is reached", "ValueError: no data for this request",
)  # fmt: skip

# A tool that does not know a name, and those that it knows.
LISTED = (
    "LookupError: {value!r} is not one of {names}", "KeyError: no {value!r} here; known are {names}", "ValueError: unknown name {value!r}. Use one of: {names}",
    "LookupError: nothing is called {value!r}; choose among {names}", "ValueError: {value!r} does not exist. There is {names}",
)  # fmt: skip
NOT_LISTED = {
    "en": ["I could not find {value}. There is {names}.", "{value} is not known there; known are {names}."],
    "zh": ["没有找到{value}，有的是{names}。"], "es": ["No se conoce {value}; hay {names}."],
    "fr": ["{value} n'est pas connu ; il y a {names}."], "de": ["{value} ist nicht bekannt; es gibt {names}."],
}  # fmt: skip

DENIED = {
    "en": ["I did not do it, because it was not allowed. I would have run it as you asked.", "The call was not allowed, so nothing was changed."],
    "zh": ["由于没有获得允许，我没有执行这个操作。"], "es": ["No se ha permitido, así que no he hecho nada."],
    "fr": ["Ce n'était pas autorisé, je n'ai donc rien fait."], "de": ["Das wurde nicht erlaubt, deshalb habe ich nichts getan."],
}  # fmt: skip

THANKS = {
    "en": [("Thanks!", "You're welcome!"), ("Great, thank you.", "Happy to help!"), ("ok", "Let me know if you need anything else.")],
    "zh": [("谢谢！", "不客气！"), ("好的", "还有需要可以随时告诉我。")],
    "es": [("¡Gracias!", "¡De nada!")], "fr": [("Merci !", "Avec plaisir !")], "de": [("Danke!", "Gern geschehen!")],
}  # fmt: skip

AGAIN = {
    "en": ["And {value}?", "What about {value}?", "Now the same for {value}."],
    "zh": ["那{value}呢？"],
    "es": ["¿Y {value}?"],
    "fr": ["Et {value} ?"],
    "de": ["Und {value}?"],
}

AND_THEN = {
    "en": ["{first} {second}", "{first} Also: {then}", "{first} And {then}", "Two things. {first} {second}"],
    "zh": ["{first}{second}", "{first}另外，{second}"],
    "es": ["{first} {second}", "Dos cosas: {first} {second}"],
    "fr": ["{first} {second}", "Deux choses : {first} {second}"],
    "de": ["{first} {second}", "Zwei Dinge: {first} {second}"],
}
IN_FRONT = {
    "en": ["Please help me. ", "Hi! ", "I'm planning my week. ", "I need this for a report. ", "Could you help? ", "Quick question: ", "My colleague asked me this. ", "Hey, ", "For my homework: ", "I was reading something and got curious. "],
    "zh": ["请问，", "你好，", "麻烦帮个忙，", "我在写报告，"],
    "es": ["Por favor: ", "Hola. ", "Una pregunta rápida. "],
    "fr": ["Bonjour. ", "Une petite question. ", "S'il te plaît : "],
    "de": ["Hallo! ", "Kurze Frage. ", "Bitte hilf mir. "],
}  # fmt: skip
BEHIND = {
    "en": [" Thanks.", " Please be quick.", " I would appreciate it.", " Use the tools you have."],
    "zh": ["谢谢。"],
    "es": [" Gracias."],
    "fr": [" Merci."],
    "de": [" Danke."],
}

SYSTEMS = (
    "You are a helpful assistant.", "You are a helpful assistant. Answer in one short sentence.", "Answer in the language of the question.",
    "Today is Monday, 2026-05-04. You are a helpful assistant.", "You are an assistant with tools. Use them when they fit, and answer in plain words otherwise.", "你是一个乐于助人的助手。",
)  # fmt: skip

# What is asked back when a question leaves out what a tool needs: by the tool's first name.
UNCLEAR = {
    "weather_now": {"en": ("What's the weather like?", "Which city do you mean?"), "zh": ("天气怎么样？", "请问是哪个城市？")},
    "rooms_search": {"en": ("Find me a hotel.", "In which city, from which date, and for how many nights?"), "zh": ("帮我找个酒店。", "请告诉我城市、入住日期和晚数。")},
    "table_booking": {"en": ("Book me a table.", "At which restaurant, for how many guests, and at what time?"), "zh": ("帮我订位。", "请问哪家餐厅、几位、什么时间？")},
    "send_note": {"en": ("Send a message for me.", "Who should get it, and what should it say?"), "zh": ("帮我发个消息。", "发给谁？内容是什么？")},
    "money_exchange": {"en": ("Convert some money.", "How much, and from which currency to which?"), "zh": ("帮我换算货币。", "金额多少？从哪种货币换成哪种？")},
    "track_parcel": {"en": ("Where is my parcel?", "Please give me the tracking number."), "zh": ("我的包裹到哪了？", "请提供快递单号。")},
    "share_quote": {"en": ("What's the share price?", "Which ticker symbol do you mean?"), "zh": ("股价是多少？", "请问是哪只股票？")},
    "loan_payment": {"en": ("What would I pay each month for a loan?", "How much do you want to borrow, at which interest rate, and for how many years?"), "zh": ("贷款每个月要还多少？", "请告诉我贷款金额、年利率和年限。")},
    "body_index": {"en": ("What is my BMI?", "Please tell me your weight and your height."), "zh": ("我的 BMI 是多少？", "请告诉我你的体重和身高。")},
    "sale_price": {"en": ("What is the price of a coat after a discount of 20%?", "What does the coat cost before the discount?"), "zh": ("打八折之后多少钱？", "原价是多少？")},
    "investment_worth": {"en": ("What will my money be worth in 10 years?", "How much do you invest, and at which rate?"), "zh": ("十年后我的钱值多少？", "你投资多少？年收益率是多少？")},
    "unit_change": {"en": ("Convert this to miles.", "Which value should I convert, and what is its unit?"), "zh": ("帮我换算成英里。", "要换算的数值和单位是什么？")},
    "circle_metrics": {"en": ("How large is my round table?", "What is its radius?"), "zh": ("我的圆桌面积多大？", "半径是多少？")},
    "rect_area": {"en": ("What is the area of my room?", "How wide and how long is it?"), "zh": ("我的房间面积多大？", "请告诉我宽和长。")},
    "order_state": {"en": ("Has my order been shipped?", "What is the number of your order?"), "zh": ("我的订单发货了吗？", "请提供订单号。")},
    "flight_options": {"en": ("I need a flight.", "From where to where, and on which date?"), "zh": ("我要订机票。", "从哪里飞到哪里？哪一天？")},
    "translate_phrase": {"en": ("Translate this for me, please.", "Which text, and into which language?"), "zh": ("帮我翻译一下。", "翻译什么内容？翻译成哪种语言？")},
    "days_apart": {"en": ("How many days are left until the holidays?", "From which date to which date should I count?"), "zh": ("离假期还有多少天？", "从哪一天算到哪一天？")},
    "motion_energy": {"en": ("What is the kinetic energy of my bicycle?", "What is its mass, and how fast does it go?"), "zh": ("我的自行车动能是多少？", "质量和速度各是多少？")},
    "train_lookup": {"en": ("Find me a train.", "From where to where, and on which date?"), "zh": ("帮我查火车。", "从哪里到哪里？哪一天？")},
}  # fmt: skip
