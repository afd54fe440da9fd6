// For everybody: no violation that axe finds, narrow windows, high zoom, light and dark.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {close, copyRun, frame, open, pictures, start, stop, twoLayers} from './helper.mjs';

before(start);
after(stop);

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

for (const colorScheme of ['light', 'dark'])
  test(`axe finds nothing in ${colorScheme}`, async () => {
    const page = await open(twoLayers(), {colorScheme});
    for (const details of await page.locator('summary').all()) await details.click();
    await page.evaluate(axe);
    const {violations, passes} = await page.evaluate((values) => axe.run(document, {runOnly: {type: 'tag', values}}), rules);
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' | ')}`), []);
    assert.ok(passes.some((rule) => rule.id === 'color-contrast') && passes.some((rule) => rule.id === 'aria-required-children'));
    await close(page);
  });

// 320 CSS pixels are a window of 1280 at 400 % (WCAG 2.2, 1.4.10).
for (const [name, options] of Object.entries({
       'light': {}, 'dark': {colorScheme: 'dark'}, 'zoom-400': {width: 320, height: 256, deviceScaleFactor: 4}, 'phone-360': {width: 360, height: 740}
     }))
  test(`fits its window: ${name}`, async () => {
    const page = await open(copyRun(), options);
    await frame(page);
    const {scrollWidth, innerWidth, wide} = await page.evaluate(() => ({
      scrollWidth: document.scrollingElement.scrollWidth,
      innerWidth,
      wide: [...document.querySelectorAll('main *')].filter((n) => n.getBoundingClientRect().right > innerWidth + 1 && !n.closest('.scroll, pre, .chart, [role=row]')).map((n) => n.outerHTML.slice(0, 80))
    }));
    assert.deepEqual(wide, []);
    assert.ok(scrollWidth <= innerWidth, `${scrollWidth} of ${innerWidth}`);
    await page.screenshot({path: join(pictures, `${name}.png`), fullPage: name !== 'zoom-400'});
    await close(page);
  });

test('every control is at least 24 pixels high and wide', async () => {
  const page = await open(copyRun());
  const small = await page.locator('button:visible, select:visible, input:visible, summary:visible').evaluateAll((all) => all
      .filter((node) => node.getBoundingClientRect().width < 24 || node.getBoundingClientRect().height < 24).map((node) => node.outerHTML.slice(0, 90)));
  assert.deepEqual(small, []);
  await close(page);
});

test('nothing moves by itself for those who asked for less motion', async () => {
  const page = await open(copyRun(), {reducedMotion: 'reduce'});
  const moving = await page.locator('*').evaluateAll((all) => all.filter((node) => {
    const style = getComputedStyle(node);
    return style.animationName !== 'none' || style.transitionDuration.split(', ').some((time) => time !== '0s');
  }).length);
  assert.equal(moving, 0);
  await close(page);
});

test('hue is never alone: a masked cell is hatched, the chosen head is marked', async () => {
  const page = await open(copyRun());
  assert.match(await page.locator('.small-map').first().evaluate((node) => getComputedStyle(node).backgroundImage), /repeating-linear-gradient/);
  assert.match(await page.locator('.head[aria-pressed=true] .head-name').evaluate((node) => getComputedStyle(node, '::before').content), /●/);
  await close(page);
});
