"""Every setting that a deployment may be told; `docs/reference/settings.md` says what each means."""

FAMILIES = ("BULLPEN_CONCURRENCY_", "BULLPEN_HEALTH_")
"""What the settings of queues and of health begin with; the name of a queue or of an option follows."""

NAMES = frozenset(
    {
        "BULLPEN_AUDIT_DAYS",
        "BULLPEN_BLOBS",
        "BULLPEN_BLOBS_HOT",
        "BULLPEN_CALDAV_PASSWORD",
        "BULLPEN_CALDAV_URL",
        "BULLPEN_CALDAV_USER",
        "BULLPEN_CALENDAR_DIR",
        "BULLPEN_CALENDAR_TIMEZONE",
        "BULLPEN_CRON_ENABLED",
        "BULLPEN_FILE_MB",
        "BULLPEN_FONTS",
        "BULLPEN_HEALTH_HOST",
        "BULLPEN_HEALTH_PORT",
        "BULLPEN_JWKS_URL",
        "BULLPEN_JWT_AUDIENCE",
        "BULLPEN_JWT_ISSUER",
        "BULLPEN_LOG_FORMAT",
        "BULLPEN_MAIL_FROM",
        "BULLPEN_MAIL_TO",
        "BULLPEN_METRICS_TENANTS",
        "BULLPEN_MODEL",
        "BULLPEN_MODELS",
        "BULLPEN_OUTGOING_ALLOW",
        "BULLPEN_RECORDS",
        "BULLPEN_RUN_DAYS",
        "BULLPEN_RUN_FILES_DAYS",
        "BULLPEN_SANDBOX",
        "BULLPEN_SANDBOX_CGROUP",
        "BULLPEN_SANDBOX_CPUS",
        "BULLPEN_SANDBOX_DIR",
        "BULLPEN_SANDBOX_DISK_MB",
        "BULLPEN_SANDBOX_MEMORY_MB",
        "BULLPEN_SANDBOX_MOST",
        "BULLPEN_SANDBOX_NETWORK",
        "BULLPEN_SANDBOX_PACKAGES",
        "BULLPEN_SANDBOX_TIMEOUT",
        "BULLPEN_SANDBOX_WARM",
        "BULLPEN_SEARCH",
        "BULLPEN_SECRET_KEY",
        "BULLPEN_SERVER",
        "BULLPEN_SERVER_DELIVERS",
        "BULLPEN_SERVER_FIELDS",
        "BULLPEN_SERVER_HOST",
        "BULLPEN_SERVER_PORT",
        "BULLPEN_SMTP_HOST",
        "BULLPEN_SMTP_PASSWORD",
        "BULLPEN_SMTP_PORT",
        "BULLPEN_SMTP_TLS",
        "BULLPEN_SMTP_USER",
        "BULLPEN_STORE",
        "BULLPEN_TOKEN",
        "BULLPEN_UPLOADS_MB",
    }
)

OF_OTHERS = frozenset({"ANTHROPIC_API_KEY", "E2B_API_KEY", "OPENAI_API_KEY"})
"""Secrets that have the names which their owners' own tools use."""
