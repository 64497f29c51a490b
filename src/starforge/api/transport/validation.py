"""Validation of documents that may be hostile: bounded, and beside an event loop that has to go on.

It runs in a thread, and a thread takes the interpreter from the loop for 5 ms each time that the loop does as little as
write to a socket. So it rests between nodes, for the loop to get through all that is ready; and what can't rest, as
it happens at one node, is bounded.
"""

import time
from collections.abc import Callable
from typing import Any

from graphql import (
    ASTValidationRule,
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    OverlappingFieldsCanBeMergedRule,
    ValidationContext,
    ValidationRule,
    specified_rules,
)
from strawberry.schema.schema import validate_document

REST_S = 0.001
NODES_BETWEEN_RESTS = 25
"""A node takes 5 to 40 µs in all rules together."""
COMPARISONS_MAX = 10_000
"""Units of graphql-core's budget for comparing fields of one response name, each about 1.5 µs. It grows with the square
of how often a name is asked for in one place; the documents of our dashboards need 11."""


class TooManyComparisons(Exception):
    """The document asks for too much under the same names."""


def rest() -> None:
    """Lets every other thread have the interpreter."""
    time.sleep(REST_S)


def validation_errors(schema: GraphQLSchema, document: DocumentNode) -> list[GraphQLError]:
    """Blocks for up to a tenth of a second. Raises TooManyComparisons, and RecursionError for what is nested too deep."""
    visitors: list[ASTValidationRule] = []

    def kept(rule: type[ASTValidationRule]) -> Callable[[ValidationContext], ASTValidationRule]:
        def make(context: ValidationContext) -> ASTValidationRule:
            visitors.append(rule(context))
            return visitors[-1]

        return make

    makers: Any = tuple(kept(rule) for rule in RULES)  # strawberry asks for types, and calls them
    try:
        errors = validate_document(schema, document, makers)
    finally:
        _forget(visitors)
    if any(error.message == "Validation aborted." for error in errors):
        raise TooManyComparisons
    return errors


def _forget(visitors: list[ASTValidationRule]) -> None:
    """A visitor refers to itself and to the document. Left to the garbage collector, a hundred documents would be
    100,000 objects that it frees in one go, with every thread stopped for a tenth of a second."""
    for visitor in visitors:
        visitor.context.__dict__.clear()
        visitor.__dict__.clear()


class _BoundedOverlaps(OverlappingFieldsCanBeMergedRule):
    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self.rule_context.remaining_complexity_budget = COMPARISONS_MAX


class _Resting(ValidationRule):
    seen = 0

    def enter(self, *_: Any) -> None:
        self.seen += 1
        if self.seen % NODES_BETWEEN_RESTS == 0:
            rest()


RULES: tuple[type[ASTValidationRule], ...] = (
    _Resting,
    *(rule for rule in specified_rules if rule is not OverlappingFieldsCanBeMergedRule),
    _BoundedOverlaps,
)
