// What the page must never do, whatever a file holds.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {after, before, test} from 'node:test';
import {close, copyRun, open, start, stop} from './helper.mjs';

before(start);
after(stop);

test('a Content-Security-Policy by hash is there and works', async () => {
  const page = await open(copyRun());
  const policy = await page.locator('meta[http-equiv=Content-Security-Policy]').getAttribute('content');
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'$/);
  const refused = await page.evaluate(async () => {
    const violations = [];
    document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
    const script = document.createElement('script');
    script.textContent = 'window.intruder = true';
    document.body.append(script);
    const style = document.createElement('style');
    style.textContent = 'body { display: none }';
    document.body.append(style);
    const image = new Image();
    image.src = 'https://example.invalid/x.png';
    await fetch('https://example.invalid/').catch(() => {});
    await new Promise((done) => setTimeout(done, 300));
    return {violations, intruder: window.intruder, shown: getComputedStyle(document.body).display};
  });
  assert.equal(refused.intruder, undefined);
  assert.equal(refused.shown, 'block');
  for (const directive of ['script-src-elem', 'style-src-elem', 'img-src', 'connect-src']) assert.ok(refused.violations.includes(directive), `${directive} of ${refused.violations}`);
  page.faults.length = 0;  // the browser reports each refusal
  await close(page);
});

test('it loads nothing and writes no markup', () => {
  const html = readFileSync(copyRun(), 'utf8');
  assert.doesNotMatch(html.replace(/http:\/\/www\.w3\.org\/2000\/svg/g, ''), /https?:|innerHTML|outerHTML\s*=|document\.write|insertAdjacentHTML|\beval\b|new Function/);
  assert.doesNotMatch(html, /<(link|img|iframe|object|embed)\b| on\w+=|src=/);
});
