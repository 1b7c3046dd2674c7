"""The look of the status page: one style sheet, light and dark, from 320 pixels up. No script."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #ffffff; --line: #e2e5ea; --ink: #1b2027; --soft: #5d6672;
  --track: #e8ebf0; --good: #1f7a4d; --good-ground: #e3f4ea; --busy: #2559b8; --busy-ground: #e5edfb;
  --warn: #8f5300; --warn-ground: #fdf0da; --bad: #b3261e; --bad-ground: #fce8e6;
  --bar: #3b76d6; --bar-over: #d1453b; --mark: #1b2027;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12151a; --card: #1a1e25; --line: #2b313b; --ink: #e8ebf0; --soft: #9aa4b1;
    --track: #2b313b; --good: #74d19f; --good-ground: #17352a; --busy: #93b8f8; --busy-ground: #1b2c49;
    --warn: #f0bb6b; --warn-ground: #3b2c13; --bad: #f59a92; --bad-ground: #431f1d;
    --bar: #5b93ee; --bar-over: #e7675d; --mark: #e8ebf0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1160px; margin: 0 auto; padding: 28px 24px 40px; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; margin-bottom: 22px; }
h1 { font-size: 22px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
header p { flex-basis: 100%; margin: 0; color: var(--soft); }
h2 { font-size: 13px; font-weight: 600; color: var(--soft); margin: 26px 0 8px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.note { padding: 12px 16px; margin-bottom: 18px; color: var(--bad); background: var(--bad-ground);
  border: 0; }
.empty { padding: 28px 16px; text-align: center; color: var(--soft); }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: 12px; font-weight: 600; color: var(--soft); padding: 9px 16px; }
td { padding: 12px 16px; border-top: 1px solid var(--line); vertical-align: middle; }
.name { font-weight: 600; }
.path { font: 13px/1.4 ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; color: var(--soft);
  overflow-wrap: anywhere; }
.usage { width: 38%; }
.figures { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 12px; }
.figures span:last-child { color: var(--soft); }
svg { display: block; width: 100%; height: 8px; margin-top: 5px; border-radius: 4px; }
.track { fill: var(--track); } .bar { fill: var(--bar); } .over { fill: var(--bar-over); }
.mark { fill: var(--mark); }
.when { white-space: nowrap; }
.soft { color: var(--soft); }
.pill { display: inline-block; padding: 2px 10px; border-radius: 999px; font-size: 13px; font-weight: 600;
  white-space: nowrap; color: var(--soft); background: var(--track); }
.good { color: var(--good); background: var(--good-ground); }
.busy { color: var(--busy); background: var(--busy-ground); }
.warn { color: var(--warn); background: var(--warn-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
footer { margin-top: 24px; font-size: 13px; color: var(--soft); }
a { color: inherit; }
a:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
@media (max-width: 720px) {
  main { padding: 20px 14px 32px; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; padding: 14px;
    border-top: 1px solid var(--line); }
  tbody tr:first-child { border-top: 0; }
  td { display: block; padding: 0; border: 0; }
  td.who, td.usage { flex: 1 0 100%; width: auto; min-width: 0; }
  td.when { margin-left: auto; }
}
"""
