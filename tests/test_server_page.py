"""The page, in the system's Chromium."""

from __future__ import annotations

import json
import shutil

import pytest
from serving import NAME, FunctionEngine, call, question, serving

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this system")

MARKUP = '<img src=x onerror="document.title=1"> <b>bold</b> </script>'


def model(prompt: str) -> str:
    if "<tool_response>" in question(prompt):
        result = question(prompt).partition("<tool_response>\n")[2].partition("\n</tool_response>")[0]
        return f"It is {result}."
    if "weather" in question(prompt) and "<tools>" in prompt:
        return "<think>\nA tool helps.\n</think>\n\nI look.\n" + call("get_weather", city="Bern")
    return f"You said: {question(prompt)}" if "long" not in question(prompt) else "word " * 100_000


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", *quiet])
        yield browser
        browser.close()


@pytest.fixture
def engine():
    return FunctionEngine(model)


@pytest.fixture
def page(browser, engine):
    with serving(engine, max_new_tokens=100_000) as url:
        page = browser.new_page()
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(url)
        sync_api.expect(page.locator("#model")).to_have_text(NAME)
        yield page
        page.close()
    assert faults == []


def ask(page, text: str) -> None:
    page.locator("#question").fill(text)
    page.keyboard.press("Enter")


def test_a_question_its_answer_and_what_is_behind_it(page, engine):
    ask(page, "Hello there")
    answer = page.locator(".assistant")
    sync_api.expect(answer).to_contain_text("You said: Hello there")
    assert page.locator("#prompt").text_content() == engine.prompt
    assert page.locator("#prompt .marker").first.text_content() == "<|im_start|>"
    sync_api.expect(page.locator("#cost")).to_contain_text("ended by stop")
    page.get_by_role("tab", name="Events").click()
    rows = page.locator(".event b").all_text_contents()
    assert rows[0] == "round_start"
    assert rows[-1] == "message_added"
    ask(page, "And again")
    sync_api.expect(answer).to_have_count(2)
    assert "Hello there" in engine.prompt, "the conversation goes on"
    page.get_by_role("button", name="Behind answer 1").click()
    sync_api.expect(page.locator("#which")).to_have_text("Behind answer 1")


def test_a_tool_whose_results_a_person_types(page, engine):
    page.locator("summary").click()
    page.get_by_role("button", name="Use an example tool").click()
    ask(page, "What is the weather?")
    result = page.get_by_label("Result of get_weather")
    sync_api.expect(result).to_be_focused()
    sync_api.expect(page.locator(".call")).to_contain_text('⚙ get_weather {"city": "Bern"}')
    sync_api.expect(page.locator(".thought").first).to_have_text("A tool helps.")
    page.keyboard.type("sunny")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator(".assistant").nth(1)).to_contain_text("It is sunny.")
    assert "<tool_response>\nsunny\n</tool_response>" in engine.prompt


def test_what_was_written_is_never_markup(page):
    ask(page, MARKUP)
    sync_api.expect(page.locator(".assistant")).to_contain_text(MARKUP)
    assert page.locator("#log img, #log b, #prompt img").count() == 0
    assert page.title() == "qwen_tools"


def test_escape_stops_an_answer_and_the_conversation_goes_on(page, engine):
    engine.pace = 0.02
    ask(page, "something long")
    sync_api.expect(page.locator(".assistant")).to_contain_text("word word")
    page.keyboard.press("Escape")
    sync_api.expect(page.locator(".fault")).to_have_text("stopped")
    given = engine.given
    ask(page, "Still there?")
    sync_api.expect(page.locator(".assistant").nth(1)).to_contain_text("You said: Still there?")
    assert engine.given < given + 200
    page.get_by_role("button", name="New chat").click()
    sync_api.expect(page.locator(".message")).to_have_count(0)
    ask(page, "Fresh")
    sync_api.expect(page.locator(".assistant")).to_contain_text("Fresh")
    assert "Still" not in engine.prompt


def test_a_new_chat_has_nothing_of_an_answer_that_was_being_made(page, engine):
    engine.pace = 0.02
    ask(page, "something long")
    sync_api.expect(page.locator(".assistant")).to_contain_text("word word")
    page.get_by_role("button", name="New chat").click()
    ask(page, "Fresh")
    sync_api.expect(page.locator(".assistant")).to_contain_text("You said: Fresh")
    assert "word" not in engine.prompt


def test_each_result_of_several_is_asked_for_and_stopping_the_answer_to_them_keeps_them(page, engine):
    page.locator("summary").click()
    page.get_by_role("button", name="Use an example tool").click()
    engine.function = lambda prompt: call("get_weather", city="Bern") + "\n" + call("get_weather", city="Oslo")
    ask(page, "What is the weather?")
    sync_api.expect(page.get_by_label('Result of get_weather {"city":"Bern"}')).to_be_focused()
    page.keyboard.type("sunny")
    page.keyboard.press("Enter")
    sync_api.expect(page.get_by_label('Result of get_weather {"city":"Oslo"}')).to_be_focused()
    page.keyboard.type("wet")
    engine.function, engine.pace = model, 1.0
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    sync_api.expect(page.locator(".fault")).to_have_text("stopped")
    engine.pace = 0.0
    ask(page, "Well?")
    sync_api.expect(page.locator(".assistant").nth(2)).to_contain_text("You said: Well?")
    assert "sunny" in engine.prompt
    assert "wet" in engine.prompt


def test_everything_is_in_reach_of_the_keyboard(page):
    reached = set()
    page.locator("#question").focus()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"new", "SUMMARY", "log", "question", "send", "tab-prompt", "prompt"} <= reached
    page.locator("#tab-prompt").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-events"
    sync_api.expect(page.locator("#events")).to_be_visible()


def test_faults_are_told(page, engine):
    page.locator("summary").click()
    page.locator("#tools").fill("[nonsense")
    ask(page, "Hello")
    sync_api.expect(page.locator(".fault")).to_contain_text("The tools are not JSON")
    sync_api.expect(page.locator("#question")).to_have_value("Hello")


def test_a_key_is_asked_for(browser):
    with serving(FunctionEngine(model), key="sesame") as url:
        page = browser.new_page()
        page.goto(url)
        sync_api.expect(page.locator("#model")).to_have_text("needs its API key")
        page.locator("#key").fill("sesame")
        page.keyboard.press("Tab")
        sync_api.expect(page.locator("#model")).to_have_text(NAME)
        ask(page, "Hello")
        sync_api.expect(page.locator(".assistant")).to_contain_text("You said: Hello")
        page.close()


@pytest.mark.parametrize("width", [320, 390, 820, 1400])
def test_nothing_is_wider_than_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.locator("summary").click()
    ask(page, "x" * 300)
    sync_api.expect(page.locator(".assistant")).to_contain_text("xxx")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_text_can_be_read_in_light_and_dark(page):
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5."""
    ask(page, "Hello")
    sync_api.expect(page.locator("#cost")).to_contain_text("ended by")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        poor = page.evaluate(
            """() => {
            const parse = (text) => text.match(/[\\d.]+/g).map(Number);
            const light = (colour) => {
                const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                const [r, g, b] = parse(colour).map((v) => linear(v / 255));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const back = (at) => {
                for (; at; at = at.parentElement) {
                    const colour = getComputedStyle(at).backgroundColor;
                    if ((parse(colour)[3] ?? 1) > 0) return colour;
                }
                return "rgb(255, 255, 255)";
            };
            return [...document.querySelectorAll("body *")].filter((at) => at.offsetParent && [...at.childNodes].some(
                (node) => node.nodeType === 3 && node.textContent.trim())).map((at) => {
                const [a, b] = [light(getComputedStyle(at).color), light(back(at))].sort((x, y) => y - x);
                return [at.id || at.className || at.tagName, (a + 0.05) / (b + 0.05)];
            }).filter(([, contrast]) => contrast < 4.5);
        }"""
        )
        assert poor == [], (scheme, json.dumps(poor))
