"""Which sections and keys there are, with their kinds, defaults and meanings.

The defaults are written as an administrator would write them, so that the schema, `config show`
and the reference have one source. `Policy` has the same ones; a test compares the two.
"""

from types import NoneType
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from cachewarden.settings import fields as kind
from cachewarden.settings.fields import key
from cachewarden_policies.policy import Order

_SHELL = ["updatedb", "plocate", "restic", "borg", "rsync", "clamd", "baloo*", "tracker-*"]
_LATER = "not supported by this version"


class Keys(BaseModel):
    """A table with known keys. `"none"` makes a key as if nothing had been set before it."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _unset(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kept: dict[str, Any] = {}
        for name, value in data.items():
            field = cls.model_fields.get(name)
            if value != "none" or field is None:
                kept[name] = value
            elif NoneType in get_args(field.annotation):
                kept[name] = None
            elif not field.is_required():
                # The default and not simply nothing: it has to hide what a policy inherits.
                kept[name] = field.default
        return kept


class DaemonKeys(Keys):
    """[daemon]: the service itself."""

    state_dir: kind.Absolute = key("/var/lib/cachewarden", "Directory of the ledger and the pins.")
    runtime_dir: kind.Absolute = key("/run/cachewarden", "Directory of the locks and the control socket.")
    http: kind.Http = key("127.0.0.1:9843", 'Address of metrics, health and page; "" turns it off.')
    interval: kind.Interval = key("5m", "A full reconcile at least this often; at least 1s.")
    schedule: kind.Cron | None = key(
        None, "Additional fixed times, cron text in local time; 0 and 7 are Sunday."
    )
    quiet_hours: kind.QuietHours = key([], "Parts of the day, local time, in which only hard limits act.")
    settle: kind.Duration = key("1s", "Quiet time after a change before a pass.")
    enforce: kind.Flag = key(True, "false: report only, nothing is evicted.")
    ignore_processes: kind.Texts = key(_SHELL, "Names (globs) of processes whose looks are no use.")
    log_format: Literal["auto", "text", "json"] = key(
        "auto", "auto: fields to the journal, colours on a terminal; text; json: one object per line."
    )
    audit_file: kind.Absolute | None = key(None, "A file that gets one JSON line for each eviction.")
    metrics_users: kind.Flag = key(False, "Names of users, and how much is theirs, on the metrics page.")


class LimitKeys(Keys):
    """What a location or a pool may hold."""

    max_size: kind.Size | None = key(None, "Soft limit: above it eviction starts.")
    target_size: kind.SizeAmount = key("90%", "Eviction stops here; percent of max_size, or a size.")
    hard_max_size: kind.Size | None = key(None, "Above it soft guards yield too.")
    max_files: kind.Count | None = key(None, "Soft limit on the number of files.")
    target_files: kind.CountAmount = key("90%", "Eviction stops here; percent of max_files, or a number.")
    max_entries: kind.Count | None = key(None, "Soft limit on the number of entries.")
    target_entries: kind.CountAmount = key("90%", "Eviction stops here; percent of max_entries, or a number.")


class FloorKeys(Keys):
    """What must stay free on the filesystem."""

    min_free: kind.SizeAmount | None = key(None, "Free space below which eviction starts; percent or a size.")
    target_free: kind.SizeAmount | None = key(None, "Eviction stops here; not set: the same as min_free.")
    hard_min_free: kind.SizeAmount | None = key(None, "Free space below which soft guards yield too.")
    min_free_files: kind.CountAmount | None = key(None, "Free inodes below which eviction starts.")


class RuleKeys(LimitKeys, FloorKeys):
    """The keys of a policy, which a location may override."""

    max_idle: kind.Duration | None = key(None, "Unused for so long: goes whatever the usage.")
    max_age: kind.Duration | None = key(None, "Older than this: goes, even when it is used daily.")
    order: Order = key("lru", "Which entries go first.")
    min_idle: kind.Duration = key("1h", "Soft guard: used less than this ago stays.")
    keep_newest: kind.Count = key(0, "Soft guard: so many of the most recently used entries stay.")
    opener_hold: kind.Duration = key("7d", "Hard guard: a living process holds for so long what it opened.")
    protect: kind.Inside = key([], "Hard guard: patterns of paths inside the location that stay.")
    exclude: kind.Inside = key(
        [], "Patterns of paths inside the location that are neither counted nor touched."
    )
    learn: kind.Duration = key("0s", "No idle or lru eviction for so long where access times say nothing.")
    max_share: kind.Share = key(
        "50%", "A pass that would remove more than this share waits for confirmation."
    )
    partial_max_idle: kind.Duration | None = key("1d", "Partial downloads untouched for so long go.")
    min_size: kind.Size = key(0, "Free-space needs never take a location below this.")
    soft_lock_age: kind.Duration = key("1d", "A lock file of another host counts as held for so long.")
    evict_all: kind.Flag = key(False, "Keep nothing: every entry that is not guarded goes.")
    per_user: kind.Unsupported = key(None, f"Limits per user; {_LATER}.")
    per_group: kind.Unsupported = key(None, f"Limits per group; {_LATER}.")
    max_pin: kind.Duration | None = key("30d", "The longest pin that users may set; none: for ever.")
    max_pinned_size: kind.Size | None = key(None, "How much one user may pin in a location.")


class PolicyKeys(RuleKeys):
    """[policies.NAME]: a named set of limits, an order and guards."""

    extends: str | None = key(None, "Another policy, or preset:NAME, whose keys are inherited.")


class LocationKeys(RuleKeys):
    """[locations.NAME]: one cache root, or a glob of them."""

    path: kind.OneOrMore = kind.required("Absolute path or glob, or a list of them.")
    layout: kind.Layout = key("auto", "How the cache splits into entries; auto: by its shape.")
    policy: str | None = key(None, "The policy, or preset:NAME; not set: only the keys given here.")
    enforce: kind.Flag = key(True, "false: report only, for this location.")
    shared: Annotated[Literal["auto", "yes", "no"], BeforeValidator(kind.parse_shared)] = key(
        "auto", "Whether other nodes use it too; auto: network and unknown filesystems are shared."
    )
    shared_without_agents: Literal["refuse", "idle"] = key(
        "refuse", "What to do with a shared location without a coordinator."
    )
    shared_idle: kind.Duration = key(
        "1d", "With shared_without_agents = idle: only what is unused for so long."
    )
    must_be_mount: kind.Flag = key(False, "Missing unless something is mounted there.")
    follow_into: kind.Texts = key([], "Patterns of paths that a location which is a link may lead to.")
    ignore_ctime: kind.Flag = key(False, "For trees whose permissions are rewritten by a nightly job.")
    accounting: Annotated[Literal["auto", "walk"], BeforeValidator(kind.parse_accounting)] = key(
        "auto", "How usage is measured."
    )
    evict_checkpoints: kind.Checkpoints = key("never", "never, or { keep_newest = N }.")
    delegate: kind.Flag = key(False, "true: a tool's own command prunes its cache (uv, pip, conda, ccache).")


class PoolKeys(LimitKeys):
    """[pools.NAME]: one limit over several locations, ranked together."""

    locations: kind.OneOrMore = kind.required("Names of locations.")


class ClusterKeys(Keys):
    """[cluster]: how nodes agree on shared locations."""

    coordinator: Annotated[str, BeforeValidator(kind.parse_coordinator)] = key("file:", "Only file: so far.")
    tls: kind.Unsupported = key(None, f"TLS to the coordinator; {_LATER}.")
    user: kind.Unsupported = key(None, f"User at the coordinator; {_LATER}.")
    password_file: kind.Unsupported = key(None, f"Password at the coordinator; {_LATER}.")


class Document(BaseSettings):
    """The whole configuration, as merged from all sources."""

    model_config = SettingsConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True)

    daemon: DaemonKeys = Field(default_factory=DaemonKeys)
    policies: dict[str, PolicyKeys] = {}
    locations: dict[str, LocationKeys] = {}
    pools: dict[str, PoolKeys] = {}
    cluster: ClusterKeys = Field(default_factory=ClusterKeys)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is given: our layers know the file and line of each key, and the environment is
        an argument; the library's own sources know neither and would read the process's environment
        a second time."""
        return (init_settings,)
