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

const settings = ['lookup', '--set', 'train.target=2', '--set', 'train.batch=16', '--steps', '900', '--no-report', '--threads', '1'];

function ask(url, headers = {}) {
  return new Promise((done, fail) => {
    const {hostname, port, pathname} = new URL(url);
    request({hostname, port, path: pathname, headers}, (answer) => {
      let text = '';
      answer.on('data', (part) => text += part).on('end', () => done({status: answer.statusCode, headers: answer.headers, text}));
    }).on('error', fail).end();
  });
}

test('a live page follows the training, tells nobody else, and changes nothing', async () => {
  const run = spawn(tapehead, ['train', ...settings, '--out', 'live', '--live'], {cwd: folder, stdio: ['ignore', 'pipe', 'ignore']});
  const ended = new Promise((done) => run.on('exit', done));
  const url = await new Promise((done) => {
    let said = '';
    run.stdout.on('data', (part) => {
      said += part;
      const found = said.match(/^live: (http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/)$/m);
      if (found) done(found[1]);
    });
  });
  const good = await ask(`${url}state`);
  assert.equal(good.status, 200);
  assert.equal(good.headers['access-control-allow-origin'], undefined);
  assert.equal((await ask(`${url}state`, {Host: 'evil.example'})).status, 403);
  assert.equal((await ask(new URL('/', url).href)).status, 404);
  assert.equal((await ask(new URL('/00000000000000000000000000000000/state', url).href)).status, 404);
  const page = await openUrl(url);
  const seen = async () => page.evaluate(() => report.snapshots.length);
  const first = await seen();
  await page.waitForFunction((before) => document.documentElement.dataset.ready === 'true' && report.snapshots.length > before, first, {timeout: 30000});
  assert.match(await page.locator('.live').textContent(), /Live|ended/);
  await page.context().close();
  assert.equal(await ended, 0);
  command('train', ...settings, '--out', 'alone', '--quiet');
  for (const file of ['last.ckpt', 'best.ckpt', 'snapshots.bin'])
    assert.ok(readFileSync(join(folder, 'live', file)).equals(readFileSync(join(folder, 'alone', file))), `${file} differs`);
});
