// The ledger against the engine, and the rules of attention that a reader can try on it.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {close, command, copyRun, folder, frame, open, start, stop} from './helper.mjs';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';

before(start);
after(stop);

test('its weights are the engine\'s to 1e-6', async () => {
  const page = await open(copyRun());
  command('inspect', 'copy/last.ckpt', '--csv', 'weights.csv');
  const lines = readFileSync(join(folder, 'weights.csv'), 'utf8').trim().split('\n');
  assert.match(lines[0], /^kind,layer,head,query,query_token,key,key_token,visible,weight$/);
  let compared = 0;
  const ledgers = await page.evaluate(() => report.heads.map((head) => head.view.rowTokens.map((_, query) =>
      workOut(head, report.details.at(-1).heads[head.index], query, 1, null).steps.map((s) => s.weight))));
  for (const line of lines.slice(1)) {
    const cells = line.split(',');
    const [head, query, key, weight] = [cells[2], cells[3], cells[5], cells[8]].map(Number);
    const ours = ledgers[head][query][key];
    assert.ok(Math.abs(ours - weight) <= 1e-6, `${line}: the ledger says ${ours}`);
    ++compared;
  }
  assert.equal(compared, 2 * 12 * 12);
  await close(page);
});

test('the table shows what was worked out', async () => {
  const page = await open(copyRun(), {hash: '#head=decoder.0.0&query=8&key=2'});
  const shown = await page.locator('#ledger tbody tr').evaluateAll((rows) => rows.map((row) => row.cells.length === 9 ? row.cells[6].textContent : 'masked'));
  const worked = await page.evaluate(() => workOut(report.heads[0], report.details.at(-1).heads[0], 8, 1, null).steps.map((s) => s.visible ? s.weight.toFixed(4) : 'masked'));
  assert.deepEqual(shown, worked);
  assert.match(await page.locator('#ledger caption').textContent(), /query 8:/);
  await close(page);
});

test('a lower temperature sharpens, a higher one flattens, and neither recovers a masked key', async () => {
  const page = await open(copyRun(), {hash: '#head=decoder.0.0&query=8'});
  const weights = () => page.locator('#ledger tbody tr').evaluateAll((rows) => rows.map((row) => row.cells.length === 9 ? Number(row.cells[6].textContent) : null));
  const at = async (power) => {
    await page.locator('#temperature').fill(String(power));
    await frame(page);
    return weights();
  };
  const sharp = await at(-0.5), plain = await at(0), flat = await at(0.5);
  const largest = (all) => Math.max(...all);
  assert.ok(largest(sharp) > largest(plain) && largest(plain) > largest(flat), `${largest(sharp)} ${largest(plain)} ${largest(flat)}`);
  for (const all of [sharp, plain, flat]) assert.deepEqual(all.map((w) => w === null), [...Array(12).keys()].map((j) => j > 8));
  await page.getByRole('button', {name: 'As trained'}).click();
  await frame(page);
  assert.deepEqual(await weights(), plain);
  await close(page);
});

test('with the causal mask the first query sees itself alone: weight 1, its own value out', async () => {
  const page = await open(copyRun(), {hash: '#head=decoder.0.0&query=0&causal=1&temperature=3'});
  const row = await page.evaluate(() => {
    const detail = report.details.at(-1).heads[0];
    const {steps, output} = workOut(report.heads[0], detail, 0, state.temperature, state.causal);
    return {weights: steps.map((s) => s.weight), output: [...output], value: [...detail.v.subarray(0, detail.Dv)]};
  });
  assert.deepEqual(row.weights, [1, ...Array(11).fill(0)]);
  assert.deepEqual(row.output, row.value);
  await page.locator('#causal').uncheck();
  await frame(page);
  assert.equal(await page.locator('#ledger td.masked').count(), 0);
  await close(page);
});
