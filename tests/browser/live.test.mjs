// A run watched while it trains: from this machine alone, and with the same result as one that nobody watched.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {request} from 'node:http';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {command, folder, openUrl, start, stop, tapehead} from './helper.mjs';

before(start);
after(stop);

const settings = ['lookup', '--set', 'train.target=2', '--set', 'train.batch=16', '--steps', '901', '--no-report', '--threads', '1'];

function ask(url, headers = {}) {
  return new Promise((done, fail) => {
    const {hostname, port, pathname, search} = new URL(url);
    request({hostname, port, path: pathname + search, headers}, (answer) => {
      let text = '';
      answer.on('data', (part) => text += part).on('end', () => done({status: answer.statusCode, headers: answer.headers, text}));
    }).on('error', fail).end();
  });
}

test('a live page follows the training, tells nobody else, and changes nothing', async () => {
  const run = spawn(tapehead, ['train', ...settings, '--out', 'live', '--live'], {cwd: folder, stdio: ['ignore', 'pipe', 'ignore']});
  const ended = new Promise((done) => run.on('exit', done));
  let said = '';
  const url = await new Promise((done) => {
    run.stdout.on('data', (part) => {
      said += part;
      const found = said.match(/^live: (http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/)$/m);
      if (found) done(found[1]);
    });
  });
  const good = await ask(`${url}more?after=-1`);
  assert.equal(good.status, 200);
  assert.equal(good.headers['access-control-allow-origin'], undefined);
  assert.equal((await ask(`${url}more?after=-1`, {Host: 'evil.example'})).status, 403);
  assert.equal((await ask(new URL('/', url).href)).status, 404);
  assert.equal((await ask(new URL('/00000000000000000000000000000000/more?after=-1', url).href)).status, 404);
  for (const after of ['', 'x', '1x', '99999999999999999999']) assert.equal((await ask(`${url}more?after=${after}`)).status, 400, after);
  const page = await openUrl(url);
  // It grows in place: what was opened stays open, who looks at the newest moment goes on with it.
  const first = await page.evaluate(() => (window.stayed = true, report.snapshots.length));
  await page.getByText('The same as a table').click();
  const longer = (than) => page.waitForFunction((before) => report.snapshots.length > before, than, {timeout: 60000});
  await longer(first);
  const now = await page.evaluate(() => ({
    stayed: window.stayed, snapshot: state.snapshot, count: report.snapshots.length, most: Number(document.querySelector('#step').max),
    steps: report.snapshots.map((s) => s.step), sums: badRows(), open: document.querySelector('details.table').open,
    moment: document.querySelector('.moment').textContent, curve: document.querySelector('.line.first').getAttribute('d').length
  }));
  assert.ok(now.stayed && now.open);
  assert.equal(now.snapshot, now.count - 1);
  assert.equal(now.most, now.count - 1);
  assert.ok(now.moment.startsWith(`step ${String(now.steps.at(-1)).replace(/\B(?=(\d{3})+$)/g, ',')} `), now.moment);
  assert.deepEqual(now.steps, [...new Set(now.steps)].sort((a, b) => a - b));
  assert.equal(now.sums, '');
  assert.ok(now.curve > 0);
  // Who looks back stays there.
  await page.evaluate(() => go({snapshot: 0}));
  await page.waitForFunction((before) => report.curves.step.length > before, await page.evaluate(() => report.curves.step.length));
  assert.equal(await page.evaluate(() => state.snapshot), 0);
  assert.match(await page.locator('.live').textContent(), /Live|ended/);
  // What is taken at the end still comes, and the page says that there will be no more.
  assert.equal(await ended, 0);
  const [, share, worked] = said.match(/^live page: (\d+\.\d) % of the training's time; beside it threads of its own worked (\d+) ms$/m).map(Number);
  assert.ok(share < 3 && worked > 0 && worked < 20000, said);
  await page.waitForFunction(() => document.querySelector('.live').textContent.startsWith('The training has ended.'));
  assert.equal(await page.evaluate(() => report.snapshots.at(-1).step), 901);
  await page.context().close();
  command('train', ...settings, '--out', 'alone', '--quiet');
  for (const file of ['last.ckpt', 'best.ckpt', 'snapshots.bin'])
    assert.ok(readFileSync(join(folder, 'live', file)).equals(readFileSync(join(folder, 'alone', file))), `${file} differs`);
});
