"""The OpenAI API of playgrounds: requests of callers who may, passed on to the server of that playground alone."""

from starforge.api.playgrounds.openai.app import OpenAiApi
from starforge.api.playgrounds.openai.limits import OpenAiLimits

__all__ = ["OpenAiApi", "OpenAiLimits"]
