"""Every error that Bullpen raises, as one tree.

    BullpenError
    ├── UsageError          the caller's mistake: nothing was changed
    │   ├── BadName         ├── BadId          ├── BadOption
    │   ├── BadData         ├── PayloadTooLarge ├── BadHandler
    │   ├── BadStep         └── AddressRefused
    ├── JobError            about one job or queue
    │   ├── JobMissing      ├── QueueMissing   ├── WrongState
    │   ├── JobFailed       ├── ResultTimeout  ├── CodecMissing
    │   ├── MoveRefused     ├── ScheduleMissing
    │   ├── GroupFull       ├── TenantRefused
    │   ├── LeaseLost       ├── JournalFull    ├── MailboxFull
    │   └── StepFailed      ── SagaFailed      ── WaitTimeout     (what a durable step came to)
    ├── StoreError          about the place where jobs are kept
    │   ├── StoreUnavailable (try again)        ├── StoreFull (make room, try again)
    │   │   └── StoreNotOpen
    │   ├── StoreReadOnly   ├── StoreCorrupt   ├── StoreTooNew
    │   └── BufferFull      ── BufferLost      (the producer's own, while the store is away)
    ├── RecordsError        about the database that the server keeps its records in
    │   ├── RecordsUnavailable (try again)      ├── RecordsTooNew   ├── SecretUnreadable
    │   ├── RecordMissing   ├── RecordTaken    ├── RecordLimit    ├── UploadsFull    ├── LastAdmin
    │   ├── BlobError       ── BlobMissing     ── BlobDamaged     ── BlobsUnavailable (try again)
    │   └── IdempotencyConflict ── IdempotencyInProgress
    ├── CallFailed          a call to somebody else's server brought no answer
    ├── AgentError          about an agent's run; ``agent_code`` is what readers of runs know it by
    │   ├── CreditsShort    (put some in)       ── BudgetSpent (wait until it renews)
    │   ├── BillingError    (try again)
    │   ├── ResearchFailed  too few agents of a wide research came to an answer
    │   ├── ToolError       ── ToolTimeout    ── WorkspaceUnsaved
    │   ├── CheckpointFailed (try again)        ├── CheckpointMissing
    │   ├── SandboxError    about a place where foreign code runs
    │   │   ├── SandboxTimeout (try again)      ├── SandboxBroken (try again)
    │   │   ├── SandboxUnavailable              ├── IsolationTooWeak
    │   │   └── SandboxRefused
    │   └── ModelError      a model's provider did not do what it was asked
    │       ├── ModelTimeout    ├── ModelLimited    ├── ModelOverloaded  (try again)
    │       ├── ProvidersDown   (try again)
    │       ├── BadAnswer       ├── AnswerBroken    (try again; it may cost)
    │       ├── ModelAccess     ├── ModelUnknown    ├── CallRefused
    │       └── ContextTooLong  ── ContentRefused
    ├── RemoteRefused       the server does not take a remote worker's token, or not for this
    └── Signal              raised by a handler to steer its job
        ├── Unrecoverable   ├── Postpone       ├── RateLimited
        └── JobCancelled

Each class has a stable ``code``; `docs/reference/errors.md` has a line for each. There is a module for each
branch, and all are imported from here.
"""

from bullpen.errors.agents import (
    AgentError,
    BillingError,
    BudgetSpent,
    CheckpointFailed,
    CheckpointMissing,
    CreditsShort,
    ResearchFailed,
    ToolError,
    ToolTimeout,
    WorkspaceUnsaved,
)
from bullpen.errors.calls import CallFailed, RemoteRefused
from bullpen.errors.jobs import (
    CodecMissing,
    GroupFull,
    JobError,
    JobFailed,
    JobMissing,
    JournalFull,
    LeaseLost,
    MailboxFull,
    MoveRefused,
    QueueMissing,
    ResultTimeout,
    SagaFailed,
    ScheduleMissing,
    StepFailed,
    TenantRefused,
    WaitTimeout,
    WrongState,
)
from bullpen.errors.models import (
    AnswerBroken,
    BadAnswer,
    CallRefused,
    ContentRefused,
    ContextTooLong,
    ModelAccess,
    ModelError,
    ModelLimited,
    ModelOverloaded,
    ModelTimeout,
    ModelUnknown,
    ProvidersDown,
)
from bullpen.errors.records import (
    BlobDamaged,
    BlobError,
    BlobMissing,
    BlobsUnavailable,
    IdempotencyConflict,
    IdempotencyInProgress,
    LastAdmin,
    RecordLimit,
    RecordMissing,
    RecordsError,
    RecordsTooNew,
    RecordsUnavailable,
    RecordTaken,
    SecretUnreadable,
    UploadsFull,
)
from bullpen.errors.root import BullpenError
from bullpen.errors.sandboxes import (
    IsolationTooWeak,
    SandboxBroken,
    SandboxError,
    SandboxRefused,
    SandboxTimeout,
    SandboxUnavailable,
)
from bullpen.errors.signals import (
    JobCancelled,
    Postpone,
    RateLimited,
    Signal,
    Unrecoverable,
)
from bullpen.errors.stores import (
    BufferFull,
    BufferLost,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNotOpen,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from bullpen.errors.usage import (
    AddressRefused,
    BadData,
    BadHandler,
    BadId,
    BadName,
    BadOption,
    BadStep,
    PayloadTooLarge,
    UsageError,
)

__all__ = [
    "AddressRefused",
    "AgentError",
    "AnswerBroken",
    "BadAnswer",
    "BadData",
    "BadHandler",
    "BadId",
    "BadName",
    "BadOption",
    "BadStep",
    "BillingError",
    "BlobDamaged",
    "BlobError",
    "BlobMissing",
    "BlobsUnavailable",
    "BudgetSpent",
    "BufferFull",
    "BufferLost",
    "BullpenError",
    "CallFailed",
    "CallRefused",
    "CheckpointFailed",
    "CheckpointMissing",
    "CodecMissing",
    "ContentRefused",
    "ContextTooLong",
    "CreditsShort",
    "GroupFull",
    "IdempotencyConflict",
    "IdempotencyInProgress",
    "IsolationTooWeak",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobMissing",
    "JournalFull",
    "LastAdmin",
    "LeaseLost",
    "MailboxFull",
    "ModelAccess",
    "ModelError",
    "ModelLimited",
    "ModelOverloaded",
    "ModelTimeout",
    "ModelUnknown",
    "MoveRefused",
    "PayloadTooLarge",
    "Postpone",
    "ProvidersDown",
    "QueueMissing",
    "RateLimited",
    "RecordLimit",
    "RecordMissing",
    "RecordTaken",
    "RecordsError",
    "RecordsTooNew",
    "RecordsUnavailable",
    "RemoteRefused",
    "ResearchFailed",
    "ResultTimeout",
    "SagaFailed",
    "SandboxBroken",
    "SandboxError",
    "SandboxRefused",
    "SandboxTimeout",
    "SandboxUnavailable",
    "ScheduleMissing",
    "SecretUnreadable",
    "Signal",
    "StepFailed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreNotOpen",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "TenantRefused",
    "ToolError",
    "ToolTimeout",
    "Unrecoverable",
    "UploadsFull",
    "UsageError",
    "WaitTimeout",
    "WorkspaceUnsaved",
    "WrongState",
]
