"""What can become of a load, as the exit status of its process, and of a piece of writing."""

WHOLE, ABSENT, HOLLOW, TORN, MIXED, BROKEN = range(6)
# absent: there was no entry. hollow: its directory was there, and not the first shard. torn: the first shard
# was there, and not a later one. mixed: shards of two generations. broken: anything else.
VERDICTS = ("whole", "absent", "hollow", "torn", "mixed", "broken")

DONE, NOWHERE, MISSING, AWAY = range(4)
# nowhere: there was no entry to add to. missing: what was added was not there any more. away: it was not
# there, and came back with its entry.
OUTCOMES = ("done", "nowhere", "missing", "away", "-", "broken")
