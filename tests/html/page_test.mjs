// The page of `collcast report` in a real browser: charts drawn, nothing asked of the network, hostile names harmless,
// readable in the dark and on a telephone. node --test page_test.mjs, with COLLCAST and CHROMIUM in the environment.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const { chromium } = createRequire(path.join(process.env.PAGE_TEST_MODULES, 'package.json'))('playwright-core');
const here = path.dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'collcast-page-'));
const file = path.join(folder, 'page.html');
const hostile = '<script>window.ran = 1</script><img src=x onerror="window.ran = 1">';
const kinds = ['breakdown', 'memory', 'timeline', 'collective-time', 'collective-busbw', 'plan', 'sweep', 'validate-bands', 'calibrate-bands', 'calibrate-rows',
  'measured-predicted'];
const tables = path.join(here, '..', '..', 'validation', 'data', 'nccl-tests');
const inputs = ['llama3-8b-8xh100', 'hostile.json', 'sweep.json', 'points.json', 'variants.json', 'plan.json', 'hostile-validate.json',
  'hostile-calibrate.json'];
const validation = () => JSON.parse(readFileSync(path.join(folder, 'validate.json'), 'utf8'));
let browser;

const collcast = (...words) => execFileSync(process.env.COLLCAST, words, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });

before(async () => {
  collcast('step', 'llama3-70b-64xh100', '--method', 'estimate', '--output', 'step.json');
  const step = JSON.parse(readFileSync(path.join(folder, 'step.json'), 'utf8'));
  writeFileSync(path.join(folder, 'hostile.json'), JSON.stringify({ ...step, scenario: hostile, title: `</title>${hostile}` }));
  collcast('collective', 'all_reduce', '--topology', 'dgx-h100', '--algorithm', 'all', '--size', '1KiB:64MiB:x8', '--output', 'sweep.json');
  collcast('plan', 'llama3-8b-8xh100', '--simulate', '0', '--output', 'plan.json');
  collcast('step', 'llama3-70b-batches-8xh100', '--method', 'estimate', '--output', 'points.json');
  collcast('step', 'gpt3-512gpu', '--what-if', 'all', '--method', 'estimate', '--output', 'variants.json');
  const variants = JSON.parse(readFileSync(path.join(folder, 'variants.json'), 'utf8'));
  variants.rows[1].values.what_if = hostile;
  writeFileSync(path.join(folder, 'variants.json'), JSON.stringify(variants));
  collcast('validate', '--measured', path.join(tables, 'a100-cw-1x8-all_reduce.csv'), path.join(tables, '2080ti-1x2-nop2p-reduce.csv'),
    '--output', 'validate.json');
  const validated = validation();
  validated.tables[1].id = hostile;
  writeFileSync(path.join(folder, 'hostile-validate.json'), JSON.stringify(validated));
  collcast('validate', '--measured', path.join(tables, 'a100-cw-1x8-all_reduce.csv'), path.join(tables, 'polaris-2x4-nccl2.18-env4-all_gather.csv'),
    '--plot', 'plot.svg', '--output', 'plotted.json');
  collcast('calibrate', '--measured', path.join(tables, 'a100-cw-1x8-all_reduce.csv'), '--output', 'calibrate.json');
  const calibrated = JSON.parse(readFileSync(path.join(folder, 'calibrate.json'), 'utf8'));
  calibrated.machines[0].topology = hostile;
  calibrated.machines[0].rows[0].id = hostile;
  writeFileSync(path.join(folder, 'hostile-calibrate.json'), JSON.stringify(calibrated));
  collcast('report', 'calibrate.json', '--output', 'calibration.html');
  collcast('report', ...inputs, '--output', file);
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

// A page with everything that went wrong in it, and all that it asked for.
async function open(options = {}, of = file) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  const requests = [];
  page.on('console', (message) => wrong.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('dialog', (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(of).href);
  await page.waitForFunction(() => document.querySelectorAll('figure svg').length === document.querySelectorAll('figure').length);
  return { page, wrong, requests, close: () => context.close() };
}

// WCAG 2.2: contrast of two colours "rgb(r, g, b)".
function contrast(a, b) {
  const luminance = (colour) => {
    const [r, g, blue] = colour.match(/[\d.]+/g).slice(0, 3).map((v) => {
      const c = Number(v) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const colours = (page) => page.evaluate(() => {
  const style = (element) => getComputedStyle(element);
  return { ink: style(document.body).color, paper: style(document.body).backgroundColor,
    panel: style(document.querySelector('figure')).backgroundColor,
    chart: style(document.querySelector('figure svg text')).fill };
});

test('a sweep is a line over its numbers for each of the rest, or a bar for each point', async () => {
  const { page, close } = await open();
  const points = page.locator('figure[data-chart="sweep"]').filter({ hasText: 'llama3-70b-batches-8xh100' });
  assert.match(await points.locator('figcaption').textContent(), /time per output token over inference\.batch/);
  const words = await points.locator('svg text').allTextContents();
  for (const name of ['inference.prompt_tokens=2048', 'inference.prompt_tokens=16384']) assert.ok(words.includes(name), words.join('|'));
  const variants = page.locator('figure[data-chart="sweep"]').filter({ hasText: 'gpt3-512gpu' });
  assert.match(await variants.locator('figcaption').textContent(), /where the time goes/);
  await close();
});

test('every kind of chart is drawn, without an error and without a request', async () => {
  const { page, wrong, requests, close } = await open();
  assert.deepEqual(await page.$$eval('figure', (all) => [...new Set(all.map((f) => f.dataset.chart))].sort()), [...kinds].sort());
  for (const kind of kinds) {
    const drawn = await page.$eval(`figure[data-chart="${kind}"] svg`, (svg) => {
      const box = svg.getBoundingClientRect();
      const shapes = [...svg.querySelectorAll('path')].filter((p) => p.getBoundingClientRect().width > 0);
      return { width: box.width, height: box.height, shapes: shapes.length, texts: svg.querySelectorAll('text').length };
    });
    assert.ok(drawn.width > 900 && drawn.height > 80, `${kind}: ${JSON.stringify(drawn)}`);
    assert.ok(drawn.shapes > 5 && drawn.texts > 3, `${kind}: ${JSON.stringify(drawn)}`);
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(requests, [pathToFileURL(file).href]);
  await close();
});

test('the verdict, the gates and the provenance are text of the page, without any script', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href);
  assert.match(await page.title(), /^report passed: 3 gates/);
  assert.match(await page.textContent('h1'), /^report passed: 3 gates/);
  const text = await page.textContent('main');
  for (const said of ['step_s', 'kept', 'collcast.step.v1', 'fnv1a64:', 'collcast 0.']) assert.ok(text.includes(said), said);
  await context.close();
});

test('a name that is markup stays text and never runs', async () => {
  const { page, wrong, close } = await open();
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(await page.$$eval('img', (all) => all.length), 0);
  assert.equal(await page.$$eval('script', (all) => all.length), 2);
  assert.ok((await page.textContent('main')).includes(hostile));
  // Should one get past the escaping, the policy of the page stops it.
  await page.evaluate((html) => { document.querySelector('main').insertAdjacentHTML('beforeend', html); }, hostile);
  await page.evaluate(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 2'; document.body.append(s); });
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.ok(wrong.some((line) => line.includes('Content Security Policy')), wrong.join('\n'));
  await close();
});

test('a calibration has its parameters with bounds, its range and its errors as text, and its rows as points', async () => {
  const alone = path.join(folder, 'calibration.html');
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(pathToFileURL(alone).href);
  const text = await plain.textContent('main');
  for (const said of ['calibrated parameters', 'may be 0.4 to 6', 'calibrated on', 'ranks on 1 node, all_reduce', 'error left by calibrations',
    'above 4 MiB', 'measured_to_predicted_p90']) assert.ok(text.includes(said), said);
  await context.close();
  const { page, wrong, close } = await open({}, alone);
  const kinds = await page.$$eval('figure', (all) => all.map((f) => f.dataset.chart));
  assert.deepEqual(kinds.sort(), ['calibrate-bands', 'calibrate-rows']);
  const { rows, row_count: count } = JSON.parse(readFileSync(path.join(folder, 'calibrate.json'), 'utf8')).machines[0];
  assert.equal(rows.length, count);
  assert.deepEqual(wrong, []);
  await close();
});

test('every row of a validated table is a point of measured against predicted', async () => {
  const rows = validation().tables.flatMap((table) => table.rows);
  assert.equal(rows.length, 102);  // 46 and 56 rows of the two tables
  const { page, wrong, close } = await open();
  // A point is a circle of eight pixels, a path of its own; marks of the legend are larger.
  const points = await page.$$eval('figure[data-chart="measured-predicted"] svg path', (all) => all.filter((shape) => {
    const box = shape.getBBox();
    return shape.getAttribute('fill') !== 'none' && Math.abs(box.width - box.height) < 0.1 && box.width > 0.5 && box.width < 9;
  }).length);
  assert.equal(points, rows.length);
  assert.deepEqual(wrong, []);
  await close();
});

test('a curve is one algorithm with one protocol, in one colour by closed form and by simulation', async () => {
  const rows = JSON.parse(readFileSync(path.join(folder, 'sweep.json'), 'utf8')).rows;
  const way = (row) => `${row.algorithm} ${row.protocol}`;
  const ways = (key) => new Set(rows.filter((row) => row[key] > 0).map(way)).size;
  assert.ok(ways('estimate_s') > 4 && new Set(rows.map((row) => row.algorithm)).size < ways('estimate_s'));
  const { page, wrong, close } = await open();
  for (const [kind, solid, dashed] of [['collective-time', ways('simulate_s'), ways('estimate_s')],
    ['collective-busbw', ways('busbw_bytes_per_s'), 0]]) {
    // Lines of the data are two pixels wide, without the short ones of the legend.
    const drawn = await page.$$eval(`figure[data-chart="${kind}"] svg path[fill="none"][stroke-width="2"]`, (all) => all
      .filter((line) => line.getBBox().width > 100)
      .map((line) => ({ colour: line.getAttribute('stroke'), dashed: line.hasAttribute('stroke-dasharray') })));
    const colours = (of) => drawn.filter((line) => line.dashed === of).map((line) => line.colour);
    assert.equal(colours(false).length, solid, kind);
    assert.equal(colours(true).length, dashed, kind);
    assert.equal(new Set(colours(false)).size, solid, kind);
    assert.equal(new Set(drawn.map((line) => line.colour)).size, Math.max(solid, dashed), kind);
    const words = await page.$$eval(`figure[data-chart="${kind}"] svg text`, (all) => all.map((text) => text.textContent));
    for (const row of rows) assert.ok(words.includes(way(row)), `${kind}: ${way(row)} in ${words}`);
  }
  assert.deepEqual(wrong, []);
  await close();
});

test('a bar of memory is all of the peak, and its legend names what there is', async () => {
  const step = (name, ...words) => {
    collcast('step', ...words, '--method', 'estimate', '--output', name);
    return JSON.parse(readFileSync(path.join(folder, name), 'utf8')).memory;
  };
  // A server, a training step, and one that has copies of its gradients.
  const memory = [step('server.json', 'llama3-70b-inference-8xh100'), step('training.json', 'llama3-8b-8xh100'),
    step('copies.json', 'gpt-1b-gradients-16xa100', '--what-if', 'powersgd')];
  assert.ok(memory[0].kv_cache_bytes > 0.02 * memory[0].peak_bytes && memory[2].gradient_copies_bytes > 0.02 * memory[2].peak_bytes);
  for (const [name, rows] of [['server.json', [0]], ['training.json', [1]], ['server.json training.json copies.json', [0, 1, 2]]]) {
    const of = path.join(folder, 'memory.html');
    collcast('report', ...name.split(' '), '--output', of);
    const { page, wrong, close } = await open({}, of);
    const svg = page.locator('figure[data-chart="memory"] svg');
    // Parts are 22 pixels high; the mark of the capacity is three wide and 26 high.
    const shapes = await svg.evaluate((drawn) => [...drawn.querySelectorAll('path')].filter((shape) => shape.getAttribute('fill') !== 'none')
      .map((shape) => { const box = shape.getBoundingClientRect(); return { left: box.left, right: box.right, height: box.height, middle: box.top + box.height / 2 }; }));
    const ends = shapes.filter((shape) => Math.abs(shape.height - 26) < 1).sort((a, b) => a.middle - b.middle);
    assert.equal(ends.length, rows.length, name);
    const words = await svg.locator('text').allTextContents();
    for (const [place, row] of rows.entries()) {
      const parts = shapes.filter((shape) => Math.abs(shape.height - 22) < 1 && Math.abs(shape.middle - ends[place].middle) < 4);
      const left = Math.min(...parts.map((part) => part.left));
      const drawn = parts.reduce((sum, part) => sum + part.right - part.left, 0);
      const share = drawn / ((ends[place].left + ends[place].right) / 2 - left);
      const expected = memory[row].peak_bytes / memory[row].capacity_bytes;
      assert.ok(Math.abs(share - expected) < 0.01, `${name}, row ${row}: ${share} of the capacity, not ${expected}`);
    }
    const some = (key) => rows.some((row) => memory[row][key] > 0);
    for (const [key, word] of [['kv_cache_bytes', 'KV cache'], ['gradients_bytes', 'gradients'], ['optimizer_bytes', 'optimizer'],
      ['gradient_copies_bytes', 'gradient copies'], ['nccl_bytes', 'NCCL'], ['context_bytes', 'context']])
      assert.equal(words.includes(word), some(key), `${name}: ${word} in ${words.join('|')}`);
    assert.deepEqual(wrong, []);
    await close();
  }
});

test('charts of forecasts say by which library', async () => {
  const { page, wrong, close } = await open();
  for (const kind of ['breakdown', 'timeline', 'collective-time', 'collective-busbw', 'plan'])
    assert.match(await page.textContent(`figure[data-chart="${kind}"] figcaption`), /nccl/, kind);
  assert.deepEqual(wrong, []);
  await close();
});

test('a chart says under the pointer what it is', async () => {
  const { page, wrong, close } = await open();
  for (const kind of ['breakdown', 'memory', 'timeline']) {
    const svg = page.locator(`figure[data-chart="${kind}"] svg`).first();
    await svg.scrollIntoViewIfNeeded();
    const before = await svg.locator('text').count();
    const box = await svg.boundingBox();
    await page.mouse.move(box.x + 320, box.y + 55);
    await page.waitForTimeout(300);
    assert.ok((await svg.locator('text').count()) > before, `${kind} has no tooltip`);
  }
  assert.deepEqual(wrong, []);
  await close();
});

test('dark and light are both readable, and change under a page that is open', async () => {
  const { page, wrong, close } = await open({ colorScheme: 'dark' });
  const dark = await colours(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.waitForTimeout(300);
  const light = await colours(page);
  for (const scheme of [dark, light]) {
    assert.ok(contrast(scheme.ink, scheme.paper) >= 7, JSON.stringify(scheme));
    assert.ok(contrast(scheme.chart, scheme.panel) >= 4.5, JSON.stringify(scheme));
  }
  assert.notEqual(dark.paper, light.paper);
  assert.notEqual(dark.chart, light.chart);
  assert.deepEqual(wrong, []);
  await close();
});

test('on a narrow screen nothing sticks out', async () => {
  const { page, wrong, close } = await open({ viewport: { width: 360, height: 740 } });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  for (const width of await page.$$eval('figure svg', (all) => all.map((svg) => svg.getBoundingClientRect().right)))
    assert.ok(width <= 360, `a chart ends at ${width}`);
  // And follows the screen when it is turned.
  await page.setViewportSize({ width: 740, height: 360 });
  await page.waitForTimeout(300);
  assert.ok((await page.$eval('figure svg', (svg) => svg.getBoundingClientRect().width)) > 500);
  assert.deepEqual(wrong, []);
  await close();
});

test('the same inputs give the same page', () => {
  const first = readFileSync(file);
  collcast('validate', '--measured', path.join(tables, 'a100-cw-1x8-all_reduce.csv'), path.join(tables, 'polaris-2x4-nccl2.18-env4-all_gather.csv'),
    '--plot', 'plot.svg', '--output', 'plotted.json');
  collcast('report', ...inputs, '--output', file);
  assert.ok(first.equals(readFileSync(file)));
});

test('the picture of validate --plot is drawn, in its frames, on light pages and on dark ones', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme });
    const page = await context.newPage();
    await page.goto(pathToFileURL(path.join(folder, 'plot.svg')).href);
    const seen = await page.evaluate(() => {
      const colour = (selector, of) => getComputedStyle(document.querySelector(selector))[of];
      const box = (element) => element.getBoundingClientRect();
      return { ground: colour('.ground', 'fill'), ink: colour('text', 'fill'), mark: colour('.all_reduce', 'stroke'),
        heads: [...document.querySelectorAll('.head')].map((head) => head.textContent),
        panels: [...document.querySelectorAll('g')].map((panel) => {
          const frame = box(panel.querySelector('.frame'));
          return [...panel.querySelectorAll('.mark')].map((mark) => {
            const of = box(mark);
            return of.left >= frame.left - 4 && of.right <= frame.right + 4 && of.top >= frame.top - 4 && of.bottom <= frame.bottom + 4 && of.width > 50;
          });
        }) };
    });
    assert.deepEqual(seen.heads.slice(1), ['one node', 'several nodes']);
    assert.deepEqual(seen.panels, [[true], [true]]);
    assert.ok(contrast(seen.ground, seen.ink) >= 7, `${seen.ground} ${seen.ink}`);
    assert.ok(contrast(seen.ground, seen.mark) >= 3, `${seen.ground} ${seen.mark}`);
    await context.close();
  }
});
