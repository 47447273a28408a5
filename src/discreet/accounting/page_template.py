"""The HTML of the certificate page. `$name` stands for what `page.certificate_page` fills in."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1c1f23; --paper: #ffffff; --line: #c4cad1; --soft: #f2f4f6;
  --good: #0b6b3a; --bad: #a3211b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --paper: #15181c; --line: #474e57; --soft: #20252b; --good: #6fd39b; --bad:
  #ff9a92; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 50rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.status { border: 2px solid; border-radius: .4rem; padding: .7rem 1rem; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); }
.note { background: var(--soft); padding: .7rem 1rem; border-radius: .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; text-align: left;
vertical-align: top;
  font-weight: 400; overflow-wrap: anywhere; }
thead th { font-weight: 600; }
code { font-family: ui-monospace, monospace; background: var(--soft); padding: .1rem .3rem; border-radius:
.2rem; } @media print { :root { --ink: #000; --paper: #fff; --line: #999; --soft: #fff; --good: #000; --bad:
#000; }
  body { padding: 0; max-width: none; font-size: 10.5pt; } h2 { break-after: avoid; } tr { break-inside:
  avoid; } }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="status $status_class" role="status">$status</p>

<h2>What is promised</h2>
<p>$promise</p>
$caveat
<p>$neighbours</p>
$stopping

<h2>What is not promised</h2>
<ul>
<li>That the model says nothing about groups of people: general patterns are what it is trained for.</li>
<li>That nothing can be concluded about a person from what holds for people like them.</li>
<li>Anything about data that did not pass through this run.</li>
</ul>

<h2>The facts</h2>
<div class="scroll"><table><tbody>
$facts
</tbody></table></div>

<h2>The bound at other deltas</h2>
<div class="scroll"><table>
<caption>Delta is the chance with which the bound may fail; a smaller one gives a larger epsilon.</caption>
<thead><tr><th scope="col">delta</th><th scope="col">epsilon</th></tr></thead>
<tbody>
$epsilons
</tbody></table></div>

<h2>The same run under three accountings</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">accounting</th><th scope="col">the adversary</th><th scope="col">epsilon</th>
<th scope="col">a guarantee?</th></tr></thead>
<tbody>
$accountings
</tbody></table></div>

<h2>What is assumed</h2>
<ul>
$assumptions
</ul>

<h2>Whom it protects against</h2>
<ul>
$threat_model
</ul>

<h2>What was charged</h2>
<div class="scroll"><table>
<caption>Planned, or the plan that bounds the run</caption>
<thead><tr><th scope="col">times</th><th scope="col">event</th><th scope="col">parameters</th></tr></thead>
<tbody>
$planned
</tbody></table></div>
<div class="scroll"><table>
<caption>Charged</caption>
<thead><tr><th scope="col">times</th><th scope="col">event</th><th scope="col">parameters</th></tr></thead>
<tbody>
$charged
</tbody></table></div>

<h2>Settings</h2>
<div class="scroll"><table><tbody>
$settings
</tbody></table></div>

<h2>How to check it</h2>
<p>The file <code>events.jsonl</code> in the folder of the run lists every charge. The command
<code>discreet certificate RUN</code> computes all numbers again from it and lists every difference. Neither
the model nor the data is needed.</p> </main> </body> </html>
"""
