"""Plain parts of an answer, those that are only read from rows, by functions that are made once per document.

graphql-core asks every leaf of every row anew what it is and how it is shown. Here that is asked once per document and
set of values of the variables that steer it (@skip and @include), and what it comes to is kept with the document. A
compiled function gives exactly what graphql-core would, or raises, whatever the reason; then graphql-core does that
part from the start, so that errors, their paths and what becomes null by them have one source.
"""

from starforge.api.transport.compiled.executor import CompiledExecutor

__all__ = ["CompiledExecutor"]
