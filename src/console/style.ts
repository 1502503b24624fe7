import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

export const style = `
:root {
  color-scheme: light dark;
  --ink: light-dark(#1b2430, #e4e8ee); --soft: light-dark(#566273, #a2adbb);
  --page: light-dark(#f6f7f9, #12161c); --panel: light-dark(#fff, #1a2029);
  --line: light-dark(#dbe0e7, #2f3844); --accent: light-dark(#1a56b0, #8ab8ff);
  --good: light-dark(#14683a, #7ed9a2); --bad: light-dark(#a8201a, #ff9b92);
  --warn: light-dark(#7a4b00, #f0c274); --bar: light-dark(#7ba4dd, #4a78b8);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--panel); padding: .4rem .8rem; z-index: 1; }
header.top { background: var(--panel); border-bottom: 1px solid var(--line); }
.bar { max-width: 76rem; margin: 0 auto; padding: .6rem 1rem; display: flex; flex-wrap: wrap;
  gap: .5rem 1rem; align-items: center; }
.brand { font-weight: 700; color: var(--ink); text-decoration: none; margin-right: auto; }
.bar form { display: flex; gap: .4rem; margin: 0; min-width: 0; }
.who { color: var(--soft); font-size: .85rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0 .3rem; margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: .3rem .6rem; text-decoration: none; border-radius: 6px 6px 0 0; }
nav a[aria-current] { color: var(--ink); font-weight: 600; box-shadow: inset 0 -3px var(--accent); }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .6rem 0 .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
code, .id { font: .92em ui-monospace, monospace; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem;
  margin: 0 0 1rem; }
.state { font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.banner { border-left: 5px solid currentcolor; font-size: 1.15rem; font-weight: 600; }
.reasons { margin: .4rem 0; padding-left: 1.2rem; } .reasons li { margin: .3rem 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: 0 0 1rem; }
.tiles div { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: .6rem .9rem; }
.tiles dt { color: var(--soft); font-size: .8rem; }
.tiles dd { margin: 0; font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1.2rem; margin: 0; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 0 0 1rem; background: var(--panel); border: 1px solid var(--line);
  border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .6rem .9rem; color: var(--soft); }
th, td { text-align: left; padding: .38rem .9rem; border-top: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; font-size: .82rem; white-space: nowrap; }
tbody th { font-size: inherit; font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
form.stack { display: grid; gap: .7rem; max-width: 34rem; }
label { display: grid; gap: .2rem; font-weight: 600; font-size: .9rem; }
label small { font-weight: 400; color: var(--soft); }
label.check { display: flex; gap: .5rem; align-items: center; font-weight: 400; }
input, select, button, textarea { font: inherit; color: inherit; }
input, select { background: var(--page); border: 1px solid var(--soft); border-radius: 6px;
  padding: .35rem .6rem; min-width: 0; max-width: 100%; }
button, .button { background: var(--panel); border: 1px solid var(--soft); border-radius: 6px;
  padding: .35rem .9rem; cursor: pointer; font-weight: 600; justify-self: start; text-decoration: none;
  display: inline-block; }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--panel); }
button.danger { background: var(--bad); border-color: var(--bad); color: var(--panel); }
.filters { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: end; }
.actions { display: flex; flex-wrap: wrap; gap: .6rem; }
svg { display: block; width: 100%; height: auto; } svg rect { fill: var(--bar); }
svg text { fill: var(--soft); font-size: 11px; }
.secret { padding: .8rem; border: 2px dashed var(--warn); border-radius: 8px; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  .facts { grid-template-columns: minmax(0, 1fr); } .facts dd { margin-bottom: .4rem; }
  .bar form.search { order: 1; flex: 1 1 100%; } .search input { flex: 1; }
}
`;

const version = bytesToHex(sha256(new TextEncoder().encode(style))).slice(0, 16);

/** The address changes with the style sheet, so browsers may keep it forever. */
export const stylePath = `/console/style-${version}.css`;
