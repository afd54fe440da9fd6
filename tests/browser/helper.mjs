// Runs of the command and a browser for the tests, shared by all of them. CHROMIUM and TAPEHEAD name other programs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';

const root = resolve(fileURLToPath(import.meta.url), '../../..');
export const tapehead = process.env.TAPEHEAD ?? join(root, 'build/release/tapehead');
export const pictures = join(root, 'build/browser');
mkdirSync(pictures, {recursive: true});
export const folder = mkdtempSync(join(tmpdir(), 'tapehead-browser-'));

export function command(...words) {
  return execFileSync(tapehead, words, {cwd: folder, encoding: 'utf8', env: {...process.env, COLUMNS: '80', OMP_WAIT_POLICY: 'passive'}});
}

// Trains once, whoever asks; the report's path.
export function trained(name, ...words) {
  const report = join(folder, name, 'report.html');
  if (!existsSync(report)) command('train', ...words, '--out', name, '--quiet');
  return report;
}
export const copyRun = () => trained('copy', 'copy', '--set', 'data.length=6', '--set', 'data.symbols=8', '--steps', '80');
export const twoLayers = () => trained('two', 'lookup', '--set', 'model.layers=2', '--set', 'model.heads=2', '--steps', '60');

let browser;
export async function start() {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking']});
}
export const stop = () => browser?.close();

// Opens a report from file:// with the network off. Everything that a page must never do is collected in `faults`.
export async function open(file, {hash = '', width = 1280, height = 900, ...options} = {}) {
  const context = await browser.newContext({viewport: {width, height}, offline: true, ...options});
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => faults.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => faults.push(`dialog: ${dialog.message()}`));
  page.on('request', (request) => request.url().startsWith(`file://${file}`) || faults.push(`request: ${request.url()}`));
  const begin = performance.now();
  await page.goto(`file://${file}${hash}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'true');
  const opened = performance.now() - begin;
  await page.waitForFunction(() => later === 0);
  page.milliseconds = opened;
  page.faults = faults;
  return page;
}

// A page that a server on this machine gives.
export async function openUrl(url) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'true');
  return page;
}

export async function close(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

// Lets what was scheduled for the next frame be drawn, and after it what is outside of the window.
export async function frame(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.waitForFunction(() => later === 0);
}
