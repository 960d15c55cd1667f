// The charts of a report, from the documents in the page. Everything that comes from a document is text: charts are
// drawn as SVG with text nodes, tooltips too.
import * as echarts from 'echarts/core';
import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, TooltipComponent } from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

echarts.use([BarChart, CustomChart, LineChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent,
  LegendComponent, TooltipComponent, SVGRenderer]);

// Colours that people with colour-blindness tell apart (Okabe and Ito, https://jfly.uni-koeln.de/color/).
const colours = { blue: '#0072B2', sky: '#56B4E9', green: '#009E73', orange: '#E69F00', red: '#D55E00',
  pink: '#CC79A7', grey: '#8A94A3', yellow: '#D9C300', brown: '#9C6644', violet: '#7B5EA7' };
const palette = Object.values(colours);
const partColours = { compute_s: colours.blue, tp_exposed_s: colours.orange, pp_exposed_s: colours.pink,
  cp_exposed_s: colours.yellow, ep_exposed_s: colours.red, dp_exposed_s: colours.green, bubble_s: colours.grey,
  optimizer_s: colours.sky, other_s: '#555555' };
// What a GPU holds, in the order of tables: the parts of peak_bytes, all that there are.
const memoryColours = { parameters_bytes: colours.blue, kv_cache_bytes: colours.violet, gradients_bytes: colours.sky,
  optimizer_bytes: colours.green, gradient_copies_bytes: colours.brown, activations_bytes: colours.orange,
  buffers_bytes: colours.red, fragments_bytes: colours.pink, nccl_bytes: colours.grey, context_bytes: colours.yellow };
const categoryColours = { compute: colours.blue, forward: colours.blue, backward: colours.sky, recompute: colours.yellow,
  tp: colours.orange, pp: colours.pink, dp: colours.green, optimizer: colours.red };
const bands = [['small', 'below 64 KiB', colours.sky], ['medium', 'to 4 MiB', colours.blue],
  ['large', 'above 4 MiB', colours.orange]];

const items = JSON.parse(document.getElementById('data').textContent);
const place = document.getElementById('charts');
const dark = matchMedia('(prefers-color-scheme: dark)');
const charts = [];

// --- words and numbers ---

function scaled(value, units) {
  const size = Math.abs(value);
  const [name, scale] = units.find(([, least]) => size >= least * 0.99995) || units[units.length - 1];
  return `${Number((value / scale).toPrecision(4))} ${name}`;
}
const seconds = (v) => (v === 0 ? '0 s' : scaled(v, [['s', 1], ['ms', 1e-3], ['us', 1e-6], ['ns', 1e-9], ['ps', 1e-12]]));
const bytes = (v) => scaled(v, [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1]]);
const rate = (v) => scaled(v, [['TB/s', 1e12], ['GB/s', 1e9], ['MB/s', 1e6], ['kB/s', 1e3], ['B/s', 1]]);
const percent = (v) => `${Number((100 * v).toPrecision(3))} %`;

function words(key) {
  const text = key.replace(/_(s|bytes)$/, '');
  return text.replace(/^([tpced]p|kv|nccl)(?=_|$)/, (name) => name.toUpperCase()).replaceAll('_', ' ');
}
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 3)}...` : text);
const of = (schema) => items.filter((item) => item.schema === schema);
const number = (v) => typeof v === 'number' && Number.isFinite(v);
const array = (v) => (Array.isArray(v) ? v : []);

// --- frames ---

function theme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return { ink: colour('--ink'), faint: colour('--faint'), line: colour('--line'), panel: colour('--panel') };
}

function add(kind, title, remark, height, option) {
  const figure = document.createElement('figure');
  const caption = document.createElement('figcaption');
  const box = document.createElement('div');
  figure.dataset.chart = kind;
  caption.textContent = title;
  if (remark) {
    const line = document.createElement('span');
    line.textContent = remark;
    caption.append(line);
  }
  box.className = 'chart';
  box.style.height = `${height}px`;
  figure.append(caption, box);
  place.append(figure);
  const chart = echarts.init(box, null, { renderer: 'svg' });
  charts.push({ chart, box, option });
  draw(charts[charts.length - 1]);
  new ResizeObserver(() => draw(charts.find((c) => c.chart === chart))).observe(box);
}

function draw({ chart, box, option }) {
  const t = theme();
  const narrow = box.clientWidth < 560;
  const chosen = option(t, narrow);
  const axis = (a) => ({ axisLine: { lineStyle: { color: t.line } }, axisTick: { lineStyle: { color: t.line } },
    splitLine: { lineStyle: { color: t.line } }, nameTextStyle: { color: t.faint }, ...a,
    axisLabel: { color: t.ink, hideOverlap: true, ...a.axisLabel } });
  chart.resize();
  chart.setOption({
    animation: false,
    aria: { enabled: true },
    backgroundColor: 'transparent',
    textStyle: { color: t.ink, fontFamily: 'system-ui, sans-serif' },
    ...chosen,
    xAxis: axis(chosen.xAxis),
    yAxis: axis(chosen.yAxis),
    legend: { type: 'scroll', top: 0, textStyle: { color: t.ink }, pageTextStyle: { color: t.ink },
      pageIconColor: t.ink, ...chosen.legend },
    tooltip: { renderMode: 'richText', confine: true, backgroundColor: t.panel, borderColor: t.line,
      textStyle: { color: t.ink }, ...chosen.tooltip },
  }, true);
}

// Rows of results under each other, one stacked bar each.
function rowsHeight(count) { return 90 + 38 * count; }
function nameAxis(names, narrow) {
  return { type: 'category', data: names, inverse: true,
    // A variant under its scenario.
    axisLabel: { lineHeight: 14, formatter: (name) => name.split(', what if ').map((part) => shortened(part, narrow ? 16 : 38)).join('\nif ') } };
}
const rowsGrid = (narrow) => ({ left: narrow ? 118 : 270, right: 28, top: 36, bottom: 30 });

function stacked(kind, title, remark, rows, keys, colourOf, format, valueAxis, more = []) {
  const names = rows.map((row) => row.name);
  add(kind, title, remark, rowsHeight(rows.length), (t, narrow) => ({
    grid: rowsGrid(narrow),
    xAxis: { type: 'value', splitNumber: narrow ? 3 : 6, ...valueAxis },
    yAxis: nameAxis(names, narrow),
    tooltip: { trigger: 'item', formatter: (p) => `${shortened(p.name, 60)}\n${p.seriesName}: ${format(p.value)}` },
    series: [
      ...keys.map((key) => ({ type: 'bar', stack: 'all', name: words(key), barMaxWidth: 22,
        itemStyle: { color: colourOf(key) }, data: rows.map((row) => row.parts[key] || 0) })),
      ...more.map((series) => series(t)),
    ],
  }));
}

// --- libraries ---

// How the collectives of a document run: its own word, or that of its rows.
function libraryOf(document) {
  if (typeof document.library === 'string') return document.library;
  return [...new Set(array(document.rows).map((row) => row.library).filter((name) => typeof name === 'string'))].join(', ');
}
const withLibrary = (name, document) => (libraryOf(document) ? `${name}, ${libraryOf(document)}` : name);

// --- steps ---

function whereTheTimeGoes() {
  const steps = of('collcast.step.v1').filter((item) => item.document.breakdown);
  // Of one library it is said once, of several beside each name.
  const libraries = [...new Set(steps.map((item) => libraryOf(item.document)).filter(Boolean))];
  const remark = libraries.length === 1 ? `; library ${libraries[0]}` : '';
  const rows = steps.map((item) => ({ parts: item.document.breakdown,
    name: libraries.length > 1 ? withLibrary(item.name, item.document) : item.name }));
  if (rows.length === 0) return;
  stacked('breakdown', 'Where the time goes', `one step of the stage with the most work; exposed: communication that computing waits for${remark}`,
    rows, breakdownKeys(rows), (key) => partColours[key], seconds, { axisLabel: { formatter: seconds } });
}

function memoryAgainstCapacity() {
  const rows = of('collcast.step.v1').filter((item) => item.document.memory && number(item.document.memory.peak_bytes))
    .map((item) => ({ name: item.name, memory: item.document.memory }));
  if (rows.length === 0) return;
  // In GiB, so that the axis has round numbers.
  const gib = (v) => v / 2 ** 30;
  const text = (v) => bytes(v * 2 ** 30);
  const keys = Object.keys(memoryColours).filter((key) => rows.some((row) => row.memory[key]));
  for (const row of rows) row.parts = Object.fromEntries(keys.map((key) => [key, gib(row.memory[key] || 0)]));
  stacked('memory', 'Memory against capacity', 'of the fullest rank; the bar across is what the GPU has', rows, keys,
    (key) => memoryColours[key], text, { axisLabel: { formatter: '{value} GiB' } },
    [(t) => ({ type: 'scatter', name: 'capacity', symbol: 'rect', symbolSize: [3, 26], itemStyle: { color: t.ink }, z: 5,
      data: rows.map((row, i) => (number(row.memory.capacity_bytes) ? [gib(row.memory.capacity_bytes), i] : null)).filter(Boolean),
      tooltip: { formatter: (p) => `${shortened(rows[p.value[1]].name, 60)}\ncapacity: ${text(p.value[0])}` } })]);
}

function stepTimeline(item) {
  const { tracks, bars } = item.timeline;
  const used = tracks.map((_, i) => i).filter((i) => bars.some((bar) => bar[0] === i));
  const categories = [...new Set(bars.map((bar) => bar[3]))];
  const end = Math.max(...bars.map((bar) => bar[2]));
  add('timeline', `Timeline of ${withLibrary(item.name, item.document)}`, 'one rank per stage, a row per stream; drag the slider to look closer',
    110 + 22 * used.length, (t, narrow) => ({
      grid: { left: narrow ? 96 : 140, right: 28, top: 36, bottom: 64 },
      xAxis: { type: 'value', min: 0, max: end, axisLabel: { formatter: seconds }, splitNumber: narrow ? 3 : 8 },
      yAxis: { ...nameAxis(used.map((i) => tracks[i]), narrow), splitLine: { show: false } },
      dataZoom: [{ type: 'slider', filterMode: 'weakFilter', height: 18, bottom: 8, labelFormatter: seconds,
        textStyle: { color: t.faint }, borderColor: t.line }],
      tooltip: { trigger: 'item', formatter: (p) => `${shortened(p.data.label, 60)}\n${seconds(p.value[1])} to ${seconds(p.value[2])}` },
      series: categories.map((category) => ({
        type: 'custom', name: category || 'other', clip: true,
        itemStyle: { color: categoryColours[category] || colours.grey },
        encode: { x: [1, 2], y: 0 },
        data: bars.filter((bar) => bar[3] === category)
          .map((bar) => ({ value: [used.indexOf(bar[0]), bar[1], bar[2]], label: bar[4] })),
        renderItem: (_, api) => {
          const from = api.coord([api.value(1), api.value(0)]);
          const to = api.coord([api.value(2), api.value(0)]);
          return { type: 'rect', style: api.style(),
            shape: { x: from[0], y: from[1] - 7, width: Math.max(to[0] - from[0], 0.5), height: 14 } };
        },
      })),
    }));
}

// --- collectives ---

function curve(kind, title, remark, lines, format) {
  add(kind, title, remark, 340, (t, narrow) => ({
    grid: { left: narrow ? 66 : 84, right: 28, top: 40, bottom: 46 },
    xAxis: { type: 'log', logBase: 2, name: 'size', nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: bytes } },
    yAxis: { type: 'log', axisLabel: { formatter: format } },
    tooltip: { trigger: 'item',
      formatter: (p) => `${p.seriesName}${lines[p.seriesIndex].suffix}\n${bytes(p.value[0])}: ${format(p.value[1])}` },
    series: lines.map((line) => ({ type: 'line', name: line.name, data: line.points, symbolSize: 6,
      lineStyle: { type: line.dashed ? 'dashed' : 'solid' }, color: palette[line.colour % palette.length] })),
  }));
}

// "ring", or "ring LL128" where the library has protocols; which group, where there are several.
function lineName(row) {
  const way = row.protocol ? `${row.algorithm} ${row.protocol}` : String(row.algorithm);
  return row.group > 0 ? `${way}, group ${row.group}` : way;
}

// Points over size by name; `names` of the document, so that a name has one colour however many of its lines there are.
function linesOf(rows, names, key, suffix, dashed) {
  const lines = names.map((name, colour) => ({ name, suffix, dashed, colour,
    points: rows.filter((row) => row.name === name && row.size_bytes > 0 && row[key] > 0)
      .map((row) => [row.size_bytes, row[key]]).sort((a, b) => a[0] - b[0]) }));
  return lines.filter((line) => line.points.length > 0);
}

function collectiveCurves(item) {
  const rows = array(item.document.rows);
  const many = new Set(rows.map((row) => row.size_bytes)).size > 1;
  if (!many) return;
  // With the choice left to the tool each size has one row: one line through all of them.
  const single = new Set(rows.map((row) => `${row.size_bytes} ${row.group}`)).size === rows.length;
  const named = rows.map((row) => ({ ...row,
    name: lineName(single ? { group: row.group, algorithm: 'chosen algorithm' } : row) }));
  const names = [...new Set(named.map((row) => row.name))];
  const times = [...linesOf(named, names, 'simulate_s', ', simulated', false),
    ...linesOf(named, names, 'estimate_s', ', closed form', true)];
  if (times.length > 0) curve('collective-time', `Time over size: ${withLibrary(item.name, item.document)}`, 'solid: simulated; dashed: closed form', times, seconds);
  const rates = linesOf(named, names, 'busbw_bytes_per_s', '', false);
  if (rates.length > 0) curve('collective-busbw', `Bus bandwidth over size: ${withLibrary(item.name, item.document)}`, '', rates, rate);
}

// --- sweeps ---

const breakdownKeys = (rows) => Object.keys(partColours).filter((key) => rows.some((row) => row.parts[key] > 1e-9 * row.parts.compute_s));

// Over the last axis of numbers, a line for each of what else differs; with no such axis where the time goes, a row per point.
function sweepChart(item) {
  const rows = array(item.document.rows).filter((row) => number(row.step_s) && row.values);
  const axes = array(item.document.axes).map(String);
  const valueOf = (row, axis) => Number.parseFloat(row.values[axis]);
  const numbers = (axis) => rows.every((row) => number(valueOf(row, axis))) && new Set(rows.map((row) => valueOf(row, axis))).size > 1;
  const x = axes.filter(numbers).pop();
  const nameOf = (row, but) => axes.filter((axis) => axis !== but).map((axis) => `${axis}=${row.values[axis] ?? 'as it is'}`).join(', ');
  const title = `Sweep of ${String(item.document.scenario)}`;
  if (x === undefined) {
    const parts = rows.filter((row) => row.breakdown).map((row) => ({ name: nameOf(row), parts: row.breakdown }));
    if (parts.length > 0)
      stacked('sweep', title, 'where the time goes', parts, breakdownKeys(parts), (key) => partColours[key], seconds, { axisLabel: { formatter: seconds } });
    return;
  }
  const served = rows.some((row) => number(row.tpot_s));
  const key = served ? 'tpot_s' : 'step_s';
  const lines = [...new Set(rows.map((row) => nameOf(row, x)))];
  const all = rows.map((row) => valueOf(row, x));
  const log = Math.min(...all) > 0 && Math.max(...all) >= 8 * Math.min(...all);
  add('sweep', title, `${served ? 'time per output token' : 'step'} over ${x}`, 340, (t, narrow) => ({
    grid: { left: narrow ? 66 : 84, right: 28, top: 40, bottom: 46 },
    xAxis: { type: log ? 'log' : 'value', ...(log ? { logBase: 2 } : {}), name: x, nameLocation: 'middle', nameGap: 28 },
    yAxis: { type: 'value', axisLabel: { formatter: seconds } },
    tooltip: { trigger: 'item', formatter: (p) => `${shortened(p.seriesName, 60)}\n${x}=${p.value[0]}: ${seconds(p.value[1])}` },
    series: lines.map((name, i) => ({ type: 'line', name: name || key, symbolSize: 6, color: palette[i % palette.length],
      data: rows.filter((row) => nameOf(row, x) === name).map((row) => [valueOf(row, x), row[key]]).sort((a, b) => a[0] - b[0]) })),
  }));
}

// --- plans ---

// Peak memory against the step; of a server tokens/s per GPU against TPOT.
function planScatter(item) {
  const server = array(item.document.ranked).some((l) => l && number(l.tpot_s));
  const [x, y] = server ? [(l) => l.tokens_per_s_per_gpu, (l) => l.tpot_s] : [(l) => l.peak_bytes / 2 ** 30, (l) => l.step_s];
  const shown = server ? (value) => `${value.toPrecision(4)} tokens/s per GPU` : (value) => bytes(value * 2 ** 30);
  const points = (list) => array(list).filter((l) => l && number(x(l)) && number(y(l)))
    .map((l) => ({ value: [x(l), y(l)], label: `TP ${l.tp} x PP ${l.pp} x DP ${l.dp}, ${server ? `batch ${l.batch}, ` : ''}micro-batch ${l.microbatch}` }));
  const ranked = points(item.document.ranked);
  const pareto = points(item.document.pareto).sort((a, b) => a.value[0] - b.value[0]);
  if (ranked.length === 0) return;
  add('plan', `Layouts of ${withLibrary(item.name, item.document)}`, 'each point a layout that fits; the line joins those that no other beats in both', 340,
    (t, narrow) => ({
      grid: { left: narrow ? 66 : 84, right: 28, top: 40, bottom: 46 },
      xAxis: { type: 'value', scale: true, name: server ? 'tokens/s per GPU' : 'peak memory', nameLocation: 'middle', nameGap: 28,
        axisLabel: { formatter: server ? '{value}' : '{value} GiB' } },
      yAxis: { type: 'value', scale: true, ...(server ? { name: 'TPOT' } : {}), axisLabel: { formatter: seconds } },
      tooltip: { trigger: 'item', formatter: (p) => `${p.data.label}\n${seconds(p.value[1])}, ${shown(p.value[0])}` },
      series: [
        { type: 'scatter', name: 'layouts', data: ranked, symbolSize: 7, color: colours.sky },
        { type: 'line', name: 'Pareto set', data: pareto, step: server ? 'start' : 'end', symbolSize: 8, color: colours.red },
      ],
    }));
}

// --- validation ---

// A row of bars per name; beyond 24 of them behind a slider.
function addErrorBars(id, title, subtitle, names, series) {
  const shown = Math.min(names.length, 24);
  add(id, title, subtitle,
    rowsHeight(shown) + 20, (t, narrow) => ({
      grid: { ...rowsGrid(narrow), right: names.length > shown ? 52 : 28 },
      xAxis: { type: 'value', axisLabel: { formatter: percent }, splitNumber: narrow ? 3 : 6 },
      yAxis: nameAxis(names, narrow),
      dataZoom: names.length > shown
        ? [{ type: 'slider', yAxisIndex: 0, right: 8, width: 16, startValue: 0, endValue: shown - 1, showDetail: false }] : [],
      tooltip: { trigger: 'item', formatter: (p) => `${shortened(p.name, 60)}\n${p.seriesName}: ${percent(p.value)}` },
      series: series.map((one) => ({ type: 'bar', ...one })),
    }));
}

function errorBands(item) {
  const tables = array(item.document.tables).filter((table) => table && table.bands).slice(0, 200);
  if (tables.length === 0) return;
  const names = tables.map((table) => String(table.id));
  addErrorBars('validate-bands', 'Error by table and size', 'median absolute percentage error of prediction against measurement', names,
    bands.map(([key, text, color]) => ({ name: `${key} (${text})`, color, barMaxWidth: 10,
      data: tables.map((table) => (table.bands[key] && number(table.bands[key].median_ape) ? table.bands[key].median_ape : null)) })));
}

// Rows of every table, and rows that stand alone: by collective, or by their source.
function deviations(document) {
  const ofFits = array(document.machines).flatMap((machine) => array(machine && machine.rows).map((row) => ({ ...row,
    source: String(row.collective), label: `${row.id}, ${bytes(row.size_bytes)}${row.in_place ? ' in place' : ''}` })));
  const tables = array(document.tables).flatMap((table) => array(table.rows).map((row) => ({ ...row,
    source: String(table.collective), label: `${table.id}, ${bytes(row.size_bytes)}${row.in_place ? ' in place' : ''}` })));
  const alone = array(document.rows).map((row) => ({ ...row, source: String(row.source_id ?? 'rows'), label: String(row.row_id ?? '') }));
  return [...ofFits, ...tables, ...alone].filter((row) => row.measured_s > 0 && row.predicted_s > 0);
}

function measuredAgainstPredicted(item, kind, title) {
  const rows = deviations(item.document);
  if (rows.length === 0) return;
  const all = rows.flatMap((row) => [row.measured_s, row.predicted_s]);
  const ends = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
  const sources = [...new Set(rows.map((row) => row.source))];
  add(kind, title, 'a point is a row of a table; on the line a prediction is exact, below it too fast', 380, (t, narrow) => ({
    grid: { left: narrow ? 66 : 84, right: 28, top: 40, bottom: 46 },
    xAxis: { type: 'log', name: 'measured', nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: seconds } },
    yAxis: { type: 'log', name: 'predicted', axisLabel: { formatter: seconds } },
    tooltip: { trigger: 'item', formatter: (p) => (p.data.label ? `${shortened(p.data.label, 60)}\nmeasured ${seconds(p.value[0])}, predicted ${seconds(p.value[1])}` : '') },
    series: [
      { type: 'line', name: 'exact', data: ends.map((v) => [v, v]), symbol: 'none', color: t.faint, lineStyle: { type: 'dashed' } },
      ...sources.map((source, i) => ({ type: 'scatter', name: source, symbolSize: rows.length > 500 ? 4 : 8, color: palette[i % palette.length],
        data: rows.filter((row) => row.source === source)
          .map((row) => ({ value: [row.measured_s, row.predicted_s], label: row.label })) })),
    ],
  }));
}

// --- calibrations ---

function calibrationBands(item) {
  const rows = array(item.document.machines).filter((machine) => machine && machine.bands)
    .flatMap((machine) => bands.filter(([key]) => machine.bands[key] && machine.bands[key].n > 0)
      .map(([key, text]) => ({ name: `${machine.topology} ${text}`, band: machine.bands[key] })));
  if (rows.length === 0) return;
  const names = rows.map((row) => row.name);
  const series = [['median_ape_before', 'as described', colours.grey], ['median_ape_after', 'with the fit', colours.blue]];
  addErrorBars('calibrate-bands', `Error left: ${withLibrary(item.name, item.document)}`, 'median absolute percentage error over the rows fitted to', names,
    series.map(([key, name, color]) => ({ name, color, barMaxWidth: 12,
      data: rows.map((row) => (number(row.band[key]) ? row.band[key] : null)) })));
}

whereTheTimeGoes();
memoryAgainstCapacity();
of('collcast.collective.v1').forEach(collectiveCurves);
of('collcast.sweep.v1').forEach(sweepChart);
of('collcast.plan.v1').forEach(planScatter);
for (const item of of('collcast.validate.v1')) {
  measuredAgainstPredicted(item, 'measured-predicted', 'Measured against predicted');
  errorBands(item);
}
for (const item of of('collcast.calibrate.v1')) {
  measuredAgainstPredicted(item, 'calibrate-rows', `Measured against predicted with the fit: ${withLibrary(item.name, item.document)}`);
  calibrationBands(item);
}
items.filter((item) => item.timeline).forEach(stepTimeline);
dark.addEventListener('change', () => charts.forEach(draw));
