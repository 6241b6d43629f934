"""A model's provider did not do what it was asked."""

from bullpen.errors.agents import AgentError


class ModelError(AgentError):
    """A model's provider did not do what it was asked."""

    code = "model-error"
    agent_code = "E007"
    safe_message = "The model could not answer. Please try again."
    may_cost: bool = False
    """Whether the provider may charge for it all the same."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        usage: object = None,
        is_whole: bool = False,
        may_cost: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.status = status
        """Of HTTP, where the provider answered at all."""
        self.retry_after = retry_after
        """In how many seconds it wants to be asked again, where it says so."""
        self.usage = usage
        """What was used before it failed, as far as is known."""
        self.is_whole = is_whole
        """Whether that is all of it: the answer had come to its end."""
        if may_cost is not None:
            self.may_cost = may_cost


class ModelTimeout(ModelError, TimeoutError):
    """The provider did not answer in time, or fell silent."""

    code = "model-timeout"
    agent_code = "E006"
    safe_message = "The model took too long to answer. Please try again."
    may_cost = True


class ModelLimited(ModelError):
    """The provider allows no more calls or tokens for now; ``retry_after`` says for how long, if it does."""

    code = "model-limited"
    agent_code = "E008"
    safe_message = "The model is in great demand. Your task goes on shortly."


class ModelOverloaded(ModelError):
    """The provider has too much to do, for all of its customers."""

    code = "model-overloaded"


class ProvidersDown(ModelError):
    """Nobody who could answer for the model is in health; ``retry_after`` says when the next of them is probed."""

    code = "providers-down"


class BadAnswer(ModelError):
    """What came is not an answer: no JSON, no words, or not in the provider's own form."""

    code = "bad-answer"
    may_cost = True


class AnswerBroken(ModelError):
    """The answer broke off; the message says how far it came."""

    code = "answer-broken"
    may_cost = True


class ModelAccess(ModelError):
    """The provider does not take our key, or its account is used up."""

    code = "model-access"
    retryable = False
    safe_message = "The model cannot be used at present. We have been told."


class ModelUnknown(ModelError):
    """There is no such model: in the table of models, or at its provider."""

    code = "model-unknown"
    agent_code = "E001"
    retryable = False
    safe_message = "There is no such model."


class CallRefused(ModelError):
    """The provider says that the call itself is wrong."""

    code = "call-refused"
    retryable = False


class ContextTooLong(ModelError):
    """The conversation is larger than what the model can read."""

    code = "context-too-long"
    retryable = False
    safe_message = "The conversation has become too long for the model."


class ContentRefused(ModelError):
    """The provider's filter does not let the conversation pass."""

    code = "content-refused"
    retryable = False
    safe_message = "The model's provider does not allow this content."
