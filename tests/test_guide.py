"""The guide: whatever it lets through parses and is valid, whatever it cannot hold to is refused by name."""

from __future__ import annotations

import json

import numpy
import pytest
import torch
from family_tokenizers import tokenizer as tokenizer_of
from jsonschema import Draft202012Validator

from qwen_tools import Tool, parse
from qwen_tools.errors import UserError
from qwen_tools.guide import Guide
from qwen_tools.guide.constraint import Grammars
from qwen_tools.guide.grammar import _FORMATS, json_value
from qwen_tools.validate import check_schema, problem

DIALECTS = ["json", "xml"]


class Dice:
    """A model that writes at random what its guide allows, and often what ends a value."""

    def __init__(self, dialect: str) -> None:
        self.tokenizer = tokenizer_of("qwen2.5")
        self.end = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.size = 151_936  # the models have more logits than there are tokens
        self.grammars = Grammars(self.tokenizer, self.size, [self.end], dialect)
        # The largest of Gumbel noise falls on every allowed token with the same chance.
        self._noise = -torch.empty(self.size).exponential_(generator=torch.Generator().manual_seed(0)).log()
        endings = ['"', "}", "]", "\n</parameter>\n", "a", "b/c", "b", "@x.de"]
        self._endings = [self.tokenizer.encode(text) for text in endings]

    def write(self, guide: Guide, seed: int, ending: float = 0.5, limit: int = 1500) -> str:
        random = numpy.random.default_rng(seed)
        constraint, ids = self.grammars.constraint(guide), []
        while not constraint.done:
            assert len(ids) < limit, self.tokenizer.decode(ids)[:500]
            chosen = constraint.forced()
            if not chosen and random.random() < ending:
                ends = [each for each in self._endings if constraint.allowed(each) == len(each)]
                chosen = ends[random.integers(len(ends))] if ends else []
            if not chosen:
                logits = self._noise.roll(int(random.integers(self.size)))
                constraint.mask(logits)
                token = int(logits.argmax())
                assert logits[token] > float("-inf")
                if token == self.end:
                    break
                chosen = [token]
            constraint.consume(chosen)
            ids += chosen
        return self.tokenizer.decode(ids)


@pytest.fixture(scope="module")
def dice():
    made: dict[str, Dice] = {}
    return lambda dialect="json": made.setdefault(dialect, Dice(dialect))


def arguments(dice: Dice, tool: Tool, seed: int, **how) -> dict:
    """The arguments of a random call, read and judged."""
    text = dice.write(Guide((tool,)), seed, **how)
    turn = parse(text, [tool])
    assert [call.name for call in turn.calls] == [tool.name], text
    assert not turn.problems, (text, turn.problems)
    assert not turn.calls[0].repairs, text
    assert problem(turn.calls[0].arguments, tool.parameters) is None
    return turn.calls[0].arguments


def of(schema, required=True) -> Tool:
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"] if required else []}
    for key in ("$defs", "definitions"):
        if isinstance(schema, dict) and key in schema:
            parameters[key] = schema.pop(key)
    return Tool("do", "Do it.", parameters)


# Every keyword of the 2020-12 vocabularies that says something of a value, and what people write besides.
SCHEMAS = [
    True,
    {},
    {"type": "null"},
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "string"},
    {"type": "array"},
    {"type": "object"},
    {"type": ["integer", "null"]},
    {"type": ["string", "null"]},
    {"type": ["string", "integer"], "maximum": 5},
    {"type": ["string", "boolean", "array"], "items": {"type": "integer"}},
    {"const": {"a": 1}},
    {"const": "a\nb"},
    {"enum": [1, "a", None, [1], {"b": 2}]},
    {"enum": ["red", "dark \"blue\"", "grün", "5", "null", "</parameter>"], "type": "string"},
    {"enum": [1, "1", "one"]},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "pattern": "^[a-c]+$"},
    {"type": "string", "pattern": "b/c"},
    {"type": "string", "pattern": "^\\d{3}-\\d{4}$"},
    {"type": "string", "pattern": "^(a|b)", "maxLength": 3},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "a-format-of-our-own"},
    {"type": "integer", "format": "int64"},
    {"type": "string", "contentEncoding": "base64", "contentMediaType": "text/plain"},
    {"type": "integer", "minimum": 1, "maximum": 12},
    {"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 2},
    {"type": "number", "minimum": 0.5, "exclusiveMaximum": 3},
    {"type": "integer", "multipleOf": 5},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    {"type": "array", "items": {"type": "array", "items": {"enum": ["a", "b"]}}},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "patternProperties": {"^s_": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "properties": {"format": {"type": "string"}, "enum": {"type": "integer"}}},
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
    {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"anyOf": [{"type": "integer", "minimum": 3}, {"const": "auto"}]},
    {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string", "minLength": 1}]},
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"type": "null"}]},
    {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    {"oneOf": [
        {"type": "object", "properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["k"]},
        {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]},
    ]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]},
    {"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 3}]},
    {"allOf": [{"$ref": "#/$defs/colour"}], "description": "d", "$defs": {"colour": {"enum": ["red", "blue"]}}},
    {"$ref": "#/$defs/node", "$defs": {
        "node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
                 "required": ["v"]},
    }},
    {"$ref": "#/definitions/name", "definitions": {"name": {"type": "string", "pattern": "^[A-Z][a-z]*$"}}},
    {"type": "string", "nullable": True},
    {"type": "integer", "nullable": True, "default": None, "title": "t", "examples": [1], "deprecated": True},
    {"not": {"type": "integer"}},
    {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "contains": {"type": "integer"}},
    {"type": "array", "contains": {"type": "integer"}, "minContains": 2, "maxContains": 3},
    {"type": "array", "unevaluatedItems": False},
    {"type": "object", "propertyNames": {"pattern": "^a"}},
    {"type": "object", "dependentRequired": {"a": ["b"]}},
    {"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}},
    {"type": "object", "unevaluatedProperties": False},
    {"type": "string", "pattern": "(?=a)b"},
    {"type": "string", "pattern": "^a|b$"},
    {"$ref": "#/$defs/missing"},
    {"$ref": "https://example.com/schema.json"},
    {"$dynamicRef": "#x"},
    {"type": "integer", "enum": ["1", "2"]},
    {"type": "integer", "minimum": 5, "maximum": 3},
    {"type": "string", "minLength": 5, "maxLength": 3},
    False,
]  # fmt: skip

# What a grammar does not do, by the keyword that the refusal must name.
REFUSED = {
    "not", "if", "uniqueItems", "contains", "minContains", "unevaluatedItems", "propertyNames", "dependentRequired",
    "dependentSchemas", "unevaluatedProperties", "pattern", "$ref", "$dynamicRef", "oneOf", "allOf", "enum", "minimum",
    "minLength", "required",
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:70])
def test_a_schema_is_held_to_or_refused_by_name(schema, dialect, dice):
    tool = of(dict(schema) if isinstance(schema, dict) else schema)
    check_schema(tool.parameters, "do")
    refusal = ""
    try:
        for seed in range(2):
            arguments(dice(dialect), tool, seed)
    except UserError as error:
        refusal = str(error)
    if refusal:
        assert "'do'" in refusal
        assert "\n" not in refusal
        keywords = {"required"} if schema is False else REFUSED & schema.keys()
        assert any(keyword in refusal for keyword in keywords), refusal


def test_most_are_held_to(dice):
    """So that a guide which refuses everything does not pass."""
    refused = 0
    for schema in SCHEMAS:
        try:
            dice().grammars.constraint(Guide((of(dict(schema) if isinstance(schema, dict) else schema),)))
        except UserError:
            refused += 1
    assert refused == 19


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "array", "uniqueItems": True}, "properties.x.uniqueItems: "),
        ({"items": {"type": "string", "pattern": "(?<!a)b"}}, "properties.x.items.pattern: regex parse error: look"),
        ({"anyOf": [{"type": "integer"}, {"not": {"type": "string"}}]}, "properties.x.anyOf.1.not: "),
    ],
)  # fmt: skip
def test_a_refusal_says_where(schema, place, dice):
    with pytest.raises(UserError) as caught:
        dice().grammars.constraint(Guide((Tool("fine", "", {}), of(schema))))
    assert f"the schema of tool 'do' cannot guide the model at {place}" in str(caught.value)


def test_what_is_no_schema_of_an_object_is_refused(dice):
    tool = Tool("do", "", {"type": "integer"})
    with pytest.raises(UserError, match=r"'do'.*type"):
        dice().grammars.constraint(Guide((tool,)))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "parameters",
    [{}, {"type": "object"}, {"type": "object", "properties": {}}, {"properties": {"a": {"type": "integer"}}}],
    ids=json.dumps,
)
def test_a_tool_with_few_parameters(parameters, dialect, dice):
    arguments(dice(dialect), Tool("do", "", parameters), 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_required_parameters_are_there_and_others_may_be(dialect, dice):
    properties = {name: {"type": "integer"} for name in "abcd"}
    tool = Tool("do", "", {"type": "object", "properties": properties, "required": ["b", "d"]})
    seen = {tuple(arguments(dice(dialect), tool, seed)) for seed in range(12)}
    assert all({"b", "d"} <= set(names) for names in seen)
    assert len(seen) > 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_several_calls_and_several_tools(dialect, dice):
    tools = (of({"type": "integer"}), Tool("other", "", {"type": "object", "properties": {"y": {"type": "boolean"}}}))
    counts, names = set(), set()
    for seed in range(15):
        turn = parse(dice(dialect).write(Guide(tools, parallel=True), seed), tools)
        assert not turn.problems
        counts.add(len(turn.calls))
        names |= {call.name for call in turn.calls}
    assert names == {"do", "other"}
    assert len(counts) > 1


def test_the_tags_of_a_call_are_the_models_own_tokens(dice):
    constraint = dice().grammars.constraint(Guide((of({"type": "string"}),)))
    forced = constraint.forced()
    assert dice().tokenizer.convert_ids_to_tokens(forced[0]) == "<tool_call>"
    assert dice().tokenizer.decode(forced) == '<tool_call>\n{"name": "do", "arguments": {"x":'
    # In the text of a value no tag can be begun by its token.
    constraint.consume([*forced, *dice().tokenizer.encode(' "some')])
    logits = torch.zeros(dice().size)
    constraint.mask(logits)
    added = list(dice().tokenizer.get_added_vocab().values())
    assert torch.isinf(logits[added]).all()


@pytest.mark.parametrize(("begun", "digit"), [("1e1", True), ("1e12", False), ("1.5E-12", False), ("112", True)])
def test_a_number_stays_within_what_a_float_holds(begun, digit, dice):
    constraint = dice().grammars.constraint(Guide((of({"type": "number"}),)))
    constraint.consume([*constraint.forced(), *dice().tokenizer.encode(f" {begun}")])
    logits = torch.zeros(dice().size)
    constraint.mask(logits)
    assert torch.isinf(logits[dice().tokenizer.encode("3")[0]]).item() != digit
    assert not torch.isinf(logits[dice().tokenizer.encode("}}")[0]])


def test_a_text_may_look_like_a_large_number(dice):
    constraint = dice().grammars.constraint(Guide((of({"type": "string"}),)))
    constraint.consume([*constraint.forced(), *dice().tokenizer.encode(' "1e12')])
    logits = torch.zeros(dice().size)
    constraint.mask(logits)
    assert not torch.isinf(logits[dice().tokenizer.encode("3")[0]])


def test_how_much_of_a_guess_is_allowed(dice):
    constraint = dice().grammars.constraint(Guide((of({"type": "integer"}),)))
    constraint.consume(constraint.forced())
    ids = dice().tokenizer.encode(" 123, no")
    assert constraint.allowed(ids) == 4
    constraint.consume(ids[:4])  # to ask changed nothing


ANSWER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "sights": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
    "required": ["city", "sights"],
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "schema", [ANSWER, {"type": "array", "items": {"type": "integer"}}, {"enum": ["yes", "no"]}, {}]
)
def test_an_answer_by_a_schema(schema, dialect, dice):
    for seed in range(4):
        value = json.loads(dice(dialect).write(Guide(schema=schema), seed), strict=False)
        Draft202012Validator(schema).validate(value)


def test_an_answers_schema_that_is_refused(dice):
    with pytest.raises(UserError, match=r"the schema of the answer cannot guide the model at items\.not"):
        dice().grammars.constraint(Guide(schema={"type": "array", "items": {"not": {}}}))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_is_a_call_or_by_the_schema(dialect, dice):
    tool, schema = of({"type": "integer"}), {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}
    called = set()
    for seed in range(12):
        text = dice(dialect).write(Guide((tool,), schema=schema), seed)
        turn = parse(text, [tool])
        called.add(bool(turn.calls))
        assert not turn.problems
        if not turn.calls:
            Draft202012Validator(schema).validate(json.loads(text))
    assert called == {True, False}


def test_a_schema_that_outgrows_the_guide_while_it_is_at_work(dice):
    with pytest.raises(UserError, match="asks too much of the guide"):
        dice().write(Guide(schema={"type": "string", "pattern": "^(a{1000}){1000}$"}), 0)


def test_without_tools_no_call_begins(dice):
    logits = torch.zeros(dice().size)
    dice().grammars.constraint(Guide()).mask(logits)
    for text in ("<tool_call>", "{", "```", "[", "<tools"):
        assert torch.isinf(logits[dice().tokenizer.encode(text)[0]])
    assert not torch.isinf(logits[dice().tokenizer.encode("Hello")[0]])


def test_prose_has_no_markup(dice):
    logits = torch.zeros(dice().size)
    prose = dice().grammars.constraint(Guide(prose=True))
    prose.consume(dice().tokenizer.encode("Hello"))
    prose.mask(logits)
    for text in ("<tool_call>", "{", "```", "[", "<"):
        assert torch.isinf(logits[dice().tokenizer.encode(text)[0]])
    assert not torch.isinf(logits[dice().tokenizer.encode(" there")[0]])


def test_formats_are_those_that_llguidance_knows():
    from llguidance import LLMatcher

    for name in _FORMATS:
        assert not LLMatcher.validate_grammar(f"start: {json_value({'type': 'string', 'format': name})}\n")


def test_the_tokenizer_is_read_as_llguidance_reads_it(dice):
    """Handing the vocabulary over as bytes allows the same ordinary tokens as reading the tokenizer's file."""
    from llguidance import LLMatcher
    from llguidance.hf import from_tokenizer

    theirs = from_tokenizer(dice().tokenizer, n_vocab=dice().size, eos_token=[dice().end])
    dice().grammars.constraint(Guide())
    ours = dice().grammars._reader.tokenizer
    grammar = f"start: {json_value(ANSWER)}\n"
    added = list(dice().tokenizer.get_added_vocab().values())
    text = '{"city": "Łódź 🏙 天", "sights": ["a", "b"'
    matchers = [LLMatcher(reader, grammar) for reader in (ours, theirs)]
    for number in dice().tokenizer.encode(text):
        masks = [
            numpy.unpackbits(numpy.frombuffer(each.compute_bitmask(), numpy.uint8), bitorder="little")
            for each in matchers
        ]
        for mask in masks:
            mask[added] = 0
        assert (masks[0] == masks[1]).all()
        assert matchers[0].compute_ff_tokens() == matchers[1].compute_ff_tokens()
        assert all(each.consume_token(number) for each in matchers)


def test_a_text_that_is_forced_has_the_tokenizers_own_tokens(dice):
    words = "Überraschung! 天气 🏙 </tool_call>"
    constraint = dice().grammars.constraint(Guide((of({"const": words}),)))
    forced = constraint.forced()
    text = dice().tokenizer.decode(forced)
    assert json.dumps(words, ensure_ascii=False) in text
    # A tag in a value is text: its token is the one that closes the call, once.
    assert forced.count(dice().tokenizer.convert_tokens_to_ids("</tool_call>")) == 1
