// The report as a person meets it: opened from a file, moved by mouse and keys.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {close, command, copyRun, frame, open, start, stop, trained, twoLayers} from './helper.mjs';

before(start);
after(stop);

const text = (page, selector) => page.locator(selector).first().textContent();

test('opens from file:// with the network off, and says what was learned', async () => {
  const page = await open(copyRun());
  assert.equal(await text(page, 'h1'), 'copy');
  assert.match(await text(page, '.verdict'), /^(Not learned yet|Learned): \d/);
  const titles = await page.locator('h2').allTextContents();
  for (const title of ['The task, worked', 'Training', 'Every head', 'The ledger', 'Without it', 'Put in from another sequence', 'Measures over training', 'What each layer would say', 'Circuits', 'The model'])
    assert.ok(titles.includes(title), `${title} is missing of ${titles}`);
  assert.match(await text(page, '.finding'), /^L0H\d puts 0\.\d\d of its weight where the rule looks/);
  assert.match(await text(page, 'pre code'), /^tapehead inspect copy --html FILE$/);
  assert.match(await text(page, '.caution'), /does not explain the decision/);
  await close(page);
});

test('everything follows the slider', async () => {
  const page = await open(copyRun());
  const state = () => page.evaluate(() => ({
    moment: document.querySelector('.moment').textContent,
    curve: document.querySelector('.cursor-line').getAttribute('x1'),
    finding: document.querySelector('.finding').textContent,
    map: document.querySelector('.small-map').toDataURL(),
    large: document.querySelector('.map').toDataURL(),
    ledger: document.querySelector('#ledger').textContent,
    ablation: document.querySelector('.ablation').textContent,
    patching: document.querySelector('.patching').textContent,
    measure: document.querySelector('.curves.small .number').textContent
  }));
  const last = await state();
  await page.locator('#step').focus();
  await page.keyboard.press('Home');
  await frame(page);
  const first = await state();
  assert.match(first.moment, /^step 0 · loss/);
  for (const part of Object.keys(first)) assert.notEqual(first[part], last[part], `${part} does not follow`);
  await page.waitForFunction(() => location.hash.includes('step=0'));
  await page.locator('.chart').first().click({position: {x: 400, y: 40}});
  await frame(page);
  assert.notEqual((await state()).moment, first.moment);
  await close(page);
});

test('the address holds the circuit and its cell', async () => {
  const page = await open(copyRun(), {hash: '#circuit=qk&from=2&to=3'});
  assert.equal(await page.locator('#circuit').inputValue(), 'qk');
  assert.match(await text(page, '.circuit .readout'), /^query 'c', key 'd'/);
  await page.getByRole('grid', {name: 'Circuit of one head'}).focus();
  await page.keyboard.press('ArrowUp');
  await page.waitForFunction(() => /circuit=qk&from=1&to=3/.test(location.hash));
  await close(page);
});

test('the address holds the state, and gives it back', async () => {
  const page = await open(twoLayers(), {hash: '#step=0&head=decoder.1.1&query=3&key=2&map=change&transpose=1&temperature=2&causal=0'});
  assert.match(await text(page, '.moment'), /^step 0 /);
  assert.match(await text(page, '#the-head'), /^L1H1/);
  assert.match(await text(page, '.readout'), /^query 3 '.+', key 2 '.+', weight 0\.\d{4}, Change/);
  assert.ok(await page.locator('#transpose').isChecked());
  assert.ok(!await page.locator('#causal').isChecked());
  assert.equal(await page.locator('[for=temperature] output').textContent(), '2.00');
  await page.locator('.head').first().click();
  await page.waitForFunction(() => location.hash.includes('head=decoder.0.0'));
  const saved = await page.evaluate(() => location.hash);
  const again = await open(twoLayers(), {hash: saved});
  assert.equal(await text(again, '.readout'), await text(page, '.readout'));
  await close(page);
  await close(again);
});

test('an address that means nothing changes nothing', async () => {
  const page = await open(copyRun(), {hash: '#step=x&head=constructor&query=1e9&key=-4&map=__proto__&temperature=NaN'});
  assert.match(await text(page, '#the-head'), /^L0H\d/);
  await close(page);
});

test('a head is chosen by a click and by keys', async () => {
  const page = await open(twoLayers());
  await page.locator('.head').nth(3).click();
  await frame(page);
  assert.match(await text(page, '#the-head'), /^L1H1: decoder self-attention, layer 1, head 1$/);
  assert.deepEqual(await page.locator('.head').evaluateAll((all) => all.map((b) => b.getAttribute('aria-pressed'))),
                   ['false', 'false', 'false', 'true']);
  await page.keyboard.press('h');
  await frame(page);
  assert.match(await text(page, '#the-head'), /^L0H0/);
  await page.keyboard.press('l');
  await frame(page);
  assert.match(await text(page, '#the-head'), /^L1H0/);
  await close(page);
});

test('a map is one tab stop, and arrow keys move its cell', async () => {
  const page = await open(copyRun(), {hash: '#query=5&key=2'});
  const grid = page.getByRole('grid', {name: 'Attention of one head'});
  assert.equal(await grid.count(), 1);
  assert.equal(await grid.evaluate((node) => node.querySelectorAll('[tabindex], button, a, input').length), 0);
  await grid.focus();
  const readout = async () => (await frame(page), text(page, '.readout'));
  const pattern = (query, key) => new RegExp(`^query ${query} '.+', key ${key} '.+'(, weight [01]\\.\\d{4}|: masked)`);
  assert.match(await readout(), pattern(5, 2));
  for (const [key, query, column] of [['ArrowDown', 6, 2], ['ArrowRight', 6, 3], ['ArrowUp', 5, 3], ['ArrowLeft', 5, 2],
                                      ['Home', 5, 0], ['End', 5, 11], ['PageDown', 11, 11], ['PageUp', 3, 11]]) {
    await page.keyboard.press(key);
    assert.match(await readout(), pattern(query, column), key);
  }
  assert.match(await readout(), /masked$/);
  assert.equal(await page.locator('.readout').first().getAttribute('aria-live'), 'polite');
  const active = await grid.getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`#${active}`).textContent(), await readout());
  assert.equal(await page.locator('[role=row]').first().getAttribute('aria-rowindex'), '4');
  assert.equal(await page.locator('[role=gridcell]').first().getAttribute('aria-colindex'), '12');
  await close(page);
});

test("the rule's pattern has the same cursor, and says what it asks for", async () => {
  const page = await open(copyRun(), {hash: '#query=6&key=0'});
  const grid = page.getByRole('grid', {name: 'What the rule looks at'});
  const said = async () => (await frame(page), grid.textContent());
  assert.match(await said(), /^query 6 '\|', key 0 '.': the rule looks here$/);  // six tokens, the separator, and the first again
  await grid.focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await said(), /^query 6 '\|', key 1 '.': the rule does not look here$/);
  assert.match(await text(page, '.readout'), /^query 6 '\|', key 1 /);
  await page.keyboard.press('End');
  assert.match(await said(), /: masked$/);
  await page.evaluate(() => go({query: 3, key: 1}));
  assert.match(await said(), /: the rule does not ask for this row$/);
  await close(page);
});

test('a measure that a head does not have shows no point', async () => {
  const page = await open(trained('cross', 'lookup', '--set', 'model.kind=encoder-decoder', '--steps', '20'));
  for (const [i, head] of (await page.evaluate(() => report.heads.map((h) => h.fullName))).entries()) {
    await page.evaluate((i) => go({head: i}), i);
    await frame(page);
    const shownPoints = await page.locator('.curves.small .curve').evaluateAll((all) => all.map((node) =>
        [node.querySelector('.number').textContent.endsWith('–') ? 0 : 1, node.querySelectorAll('.dot:not(.hidden)').length]));
    for (const [expected, points] of shownPoints) assert.equal(points, expected, `${head}: ${shownPoints}`);
  }
  await close(page);
});

test('the cell under the pointer is read out, a click keeps it', async () => {
  const page = await open(copyRun(), {hash: '#query=5&key=2'});
  const spot = await page.evaluate(() => {
    const canvas = document.querySelector('.map').getBoundingClientRect();
    return {x: canvas.right - 4, y: canvas.bottom - 4};
  });
  await page.locator('.map').first().scrollIntoViewIfNeeded();
  const box = await page.locator('.map').first().boundingBox();
  await page.mouse.move(box.x + box.width - 6, box.y + box.height - 6);
  assert.match(await text(page, '.readout'), /^query 11 '.+', key 11 '.+'/);
  await page.mouse.down();
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes('query=11'));
  assert.ok(spot.x > 0);
  await close(page);
});

test('? lists the keys, which can be turned off', async () => {
  const page = await open(copyRun());
  await page.keyboard.press('?');
  assert.ok(await page.getByRole('dialog').isVisible());
  await page.getByLabel('Single keys work').uncheck();
  await page.getByRole('button', {name: 'Close'}).click();
  const moment = await text(page, '.moment');
  await page.keyboard.press('[');
  await frame(page);
  assert.equal(await text(page, '.moment'), moment);
  await page.getByRole('button', {name: 'Keys ?'}).click();
  await page.getByLabel('Single keys work').check();
  await page.keyboard.press('Escape');
  await page.keyboard.press('[');
  await frame(page);
  assert.notEqual(await text(page, '.moment'), moment);
  await close(page);
});

test('the same stands in a real table, with what is masked', async () => {
  const page = await open(copyRun());
  await page.getByText('The same as a table').click();
  await page.locator('details.table tbody tr').first().waitFor();  // browsers tell of the opening a little later
  const rows = await page.locator('details.table tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((c) => c.textContent)));
  assert.equal(rows.length, 12);
  for (const [i, row] of rows.entries()) {
    const weights = row.slice(1);
    assert.equal(weights.filter((w) => w === 'masked').length, 11 - i);
    const sum = weights.filter((w) => w !== 'masked').reduce((a, w) => a + Number(w), 0);
    assert.ok(Math.abs(sum - 1) < 1e-3, `row ${i} sums to ${sum}`);
  }
  await close(page);
});

test('every figure of attention carries the caution', async () => {
  const page = await open(twoLayers());
  const without = await page.evaluate(() => [...document.querySelectorAll('section')].filter((s) => s.querySelector('canvas, svg, table.ablation, table.lens') && !s.querySelector('.caution'))
      .map((s) => s.querySelector('h2').textContent));
  assert.deepEqual(without, ['Training']);  // its curves show no weight
  for (const words of await page.locator('.caution').allTextContents()) assert.match(words, /does not explain the decision/);
  await close(page);
});

test('a label states what it needs, as a line and in words', async () => {
  const page = await open(copyRun());
  const figures = page.locator('.curves.small .curve');
  for (const figure of await figures.all()) {
    const title = await figure.locator('strong').textContent(), line = figure.locator('.threshold');
    const gives = ['Pattern match', 'Previous token', 'Duplicate token', 'Induction'].includes(title);
    assert.equal(await line.count(), gives ? 1 : 0, title);
    if (!gives) continue;
    assert.match(await figure.locator('figcaption').textContent(), /From 0\.5 on a head is labelled “[a-z ]+”/);
    const [top, bottom, level] = await figure.evaluate((node) => [...[...node.querySelectorAll('.tick')].map((t) => Number(t.getAttribute('y1'))).sort((a, b) => a - b).filter((_, i) => i !== 1),
                                                                  Number(node.querySelector('.threshold').getAttribute('y1'))]);
    assert.ok(Math.abs(level - (top + bottom) / 2) < 1e-6, `${title}: ${top} ${level} ${bottom}`);
  }
  await close(page);
});

test('the lens ends with what the model says, and the parts of each answer sum to its logit and its lead', async () => {
  const page = await open(twoLayers());
  const {last, predicted, expected, sums} = await page.evaluate(() => {
    const {lens, attribution} = report.details.at(-1), {predicted, expected} = report.about.example;
    return {last: [...lens.at(-1).likeliest].map((i) => report.vocabulary[i]), predicted, expected,
            sums: attribution.rows.map(({values, leads, logit, lead}) => [values.reduce((a, b) => a + b) - logit, leads.reduce((a, b) => a + b) - lead])};
  });
  const counted = expected.flatMap((token, i) => token ? [i] : []);
  assert.deepEqual(counted.map((i) => last[i]), counted.map((i) => predicted[i]));
  assert.equal(sums.length, counted.length);
  for (const sum of sums.flat()) assert.ok(Math.abs(sum) < 1e-3, `${sums}`);
  // A row that is chosen in one table is that of the other, and of the map.
  assert.equal(await page.locator('table.lens tbody tr').count(), counted.length);
  const title = await text(page, 'table.attribution caption');
  await page.locator('table.lens tbody tr:not(.chosen) button').first().click();
  await frame(page);
  assert.notEqual(await text(page, 'table.attribution caption'), title);
  assert.ok(counted.includes(await page.evaluate(() => state.query)));
  assert.equal(await page.locator('table.lens tr.chosen').count(), 1);
  const [parts, total] = await page.evaluate(() => ['tbody', 'tfoot'].map((part) => [...document.querySelectorAll(`table.attribution ${part} tr`)].map((r) => Number(r.cells[1].textContent.replace('−', '-')))));
  assert.ok(Math.abs(parts.reduce((a, b) => a + b) - total[0]) < 0.001 * parts.length, `${parts} is not ${total}`);
  await close(page);
});

test('patching: what the command says of the same two sequences', async () => {
  const page = await open(copyRun());
  const {clean, corrupt, recovered, shown: rows} = await page.evaluate(() => {
    const source = ({inputs}) => inputs.slice(0, inputs.indexOf('|')).join(' '), detail = report.details.at(-1);
    return {clean: source(report.about.example), corrupt: source(report.about.corrupt), recovered: detail.heads.map((head) => head.recovered),
            shown: [...document.querySelectorAll('table.patching tbody tr')].map((row) => Number(row.cells[1].textContent.replace('−', '-')))};
  });
  assert.notEqual(clean, corrupt);
  const told = JSON.parse(command('inspect', 'copy/last.ckpt', '--input', corrupt, '--patch', clean, '--json').trim().split('\n').at(-1));
  assert.equal(told.heads.length, recovered.length);
  for (const [h, {recovered: share}] of told.heads.entries()) {
    assert.ok(Math.abs(recovered[h] - share) < 1e-5, `${recovered[h]} is not ${share}`);
    assert.ok(Math.abs(rows[h] - share) <= 0.00051, `${rows[h]} is not ${share}`);
  }
  await close(page);
});

test('evidence and circuits are those of the nearest step that has some, and grey', async () => {
  const page = await open(twoLayers());
  const without = await page.evaluate(() => report.snapshots.findIndex((s) => !s.detail));
  for (const map of ['gradient', 'effect', 'norm', 'knockOut']) {
    await page.evaluate(([snapshot, map]) => go({snapshot, map}), [without, map]);
    await frame(page);
    const step = await page.evaluate((name) => report.snapshots[nearestDetail(currentSnapshot(), (d) => d.heads[0][name]).snapshot].step, map === 'effect' ? 'gradient' : map);
    assert.match(await text(page, '#learned-by-heart .stale'), new RegExp(`Not computed at this step: this is step ${step},`));
    assert.match(await text(page, '.readout'), new RegExp(`\\(at step ${step}\\)|masked`));
    assert.equal(await page.locator('canvas.map.old').count(), 2);  // the large one and the circuit
  }
  await page.evaluate(() => go({snapshot: report.details[0].snapshot, map: 'gradient'}));
  await frame(page);
  assert.equal(await page.locator('.maps canvas.map.old').count(), 0);  // the circuits of so many tokens are kept at fewer steps
  assert.equal(await text(page, '#learned-by-heart .stale'), '');
  await close(page);
});

test('what needs parameters that were not kept says so', async () => {
  const page = await open(twoLayers());
  const without = await page.evaluate(() => report.snapshots.findIndex((s) => !s.detail));
  assert.ok(without > 0);
  await page.evaluate((snapshot) => go({snapshot, map: 'gradient'}), without);
  await frame(page);
  for (const stale of await page.locator('.stale').allTextContents()) assert.match(stale, /not (kept|computed) at this step/i);
  assert.ok(await page.locator('table.old').count() >= 2);
  await close(page);
});

test('circuits are those of the chosen head', async () => {
  const page = await open(copyRun());
  const grid = page.getByRole('grid', {name: 'Circuit of one head'});
  await grid.focus();
  await page.evaluate(() => {  // both before the next frame
    for (const key of ['ArrowDown', 'ArrowRight']) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  });
  await frame(page);
  const said = await page.locator('.circuit .readout').textContent();
  assert.match(said, /^key 'b', token 'b': -?\d/);
  await page.locator('.head').nth(1).click();
  await frame(page);
  const other = await page.locator('.circuit .readout').textContent();
  await page.locator('.head').nth(0).click();
  await frame(page);
  assert.notEqual(other, await page.locator('.circuit .readout').textContent());
  await page.locator('#circuit').selectOption('qk');
  await frame(page);
  assert.match(await page.locator('.circuit .readout').textContent(), /^query 'b', key 'b'/);
  await close(page);
});

test('rollout: rows sum to 1, of one layer it is half the mean of its heads, half the row itself', async () => {
  for (const [run, layer] of [[copyRun, 0], [twoLayers, 1]]) {
    const page = await open(run(), {hash: `#head=decoder.${layer}.0&map=rollout`});
    assert.equal(await text(page, '.stale'), '');
    const {sums, off} = await page.evaluate(() => {
      const spec = mapSpec('rollout'), {cells, columns: T} = spec.view, sums = new Array(T).fill(0);
      let off = 0;
      for (const [slot, cell] of cells.entries()) {
        const i = Math.floor(cell / T), j = cell % T;
        sums[i] += spec.value(slot);
        const mean = report.heads.filter((h) => h.layer === 0).reduce((sum, h, _, all) => sum + weightAt(currentSnapshot(), h, i, j) / all.length, 0);
        off = Math.max(off, Math.abs(spec.value(slot) - mean / 2 - (i === j ? 0.5 : 0)));
      }
      return {sums, off};
    });
    for (const sum of sums) assert.ok(Math.abs(sum - 1) < 1e-3, `${sums}`);
    assert.equal(off < 1e-9, layer === 0, `${off}`);
    await close(page);
  }
});

test('a cell knocked out: the loss it costs', async () => {
  const page = await open(copyRun(), {hash: '#map=knockOut'});
  assert.equal(await text(page, '.stale'), '');
  const {query, key} = await page.evaluate(() => ({query: state.query, key: state.key}));
  assert.match(await text(page, '.readout'), /Loss when the cell is masked -?\d/);
  const told = command('inspect', 'copy/last.ckpt', '--knock-out', `0,${await page.evaluate(() => currentHead().head)},${query},${key}`);
  assert.match(told, /loss/);
  await close(page);
});

test('a head of a later layer says what it reads of earlier heads', async () => {
  const page = await open(twoLayers(), {hash: '#head=decoder.1.0'});
  const rows = await page.getByRole('region', {name: 'Composition'}).locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((c) => c.textContent)));
  assert.deepEqual(rows.map((row) => row[0]), ['L0H0', 'L0H1']);
  for (const row of rows) for (const score of row.slice(1)) assert.ok(Number(score) > 0 && Number(score) < 1, score);
  await page.locator('.head').first().click();
  await frame(page);
  assert.ok(!await page.getByRole('region', {name: 'Composition'}).isVisible());
  await close(page);
});
