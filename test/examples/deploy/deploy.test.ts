/**
 * Tests the deployment examples. Every file that an example names exists, and the server behaves as the
 * example says.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { eventTypes } from '#src/audit/types.ts'
import { settings } from '#src/config.ts'
import type { Json } from '#test/support/app.ts'
import { startApp } from '#test/support/app.ts'
import { serveExecutable } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'

const text = (name: string): string => readFileSync(join(import.meta.dir, name), 'utf8')
const examples = readdirSync(import.meta.dir).filter(name => !name.endsWith('.ts'))

test('every setting that an example uses exists', () => {
  const known = new Set(Object.keys(settings).map(name => `GATEHOUSE_${name.toUpperCase()}`))
  for (const name of examples)
    for (const [variable] of text(name).matchAll(/GATEHOUSE_[A-Z_]+/g))
      expect([
        name,
        variable,
        variable === 'GATEHOUSE_CONFIG' || known.has(variable.replace(/_FILE$/, '')),
      ]).toEqual([name, variable, true])
})

test('every metric that the dashboard uses exists', async () => {
  const app = await startApp()
  const exposed = await (await app.call('/metrics', { headers: { host: 'localhost:8080' } })).text()
  const { panels }: Json = JSON.parse(text('grafana.json'))
  expect(panels.length).toBeGreaterThan(5)
  for (const { targets } of panels)
    for (const { expr } of targets)
      for (const [metric] of expr.matchAll(/gatehouse_\w+/g))
        expect(exposed).toContain(`# TYPE ${metric.replace(/_(bucket|count|sum)$/, '')} `)
  const named = [...text('grafana.json').matchAll(/type=\\"([\w.]+)\\"/g)].map(([, type]) => type)
  expect(named).toEqual(['user.login', 'user.login_failed'])
  expect(eventTypes).toEqual(expect.arrayContaining(named))
})

test('proxies forward the client address, and keep the metrics private', () => {
  for (const name of ['nginx.conf', 'Caddyfile', 'traefik.yaml']) expect(text(name)).toContain('/metrics')
  for (const name of ['nginx.conf', 'Caddyfile', 'traefik.yaml'])
    expect([name, text(name).split('\n').slice(0, 2).join(' ')]).toEqual([
      name,
      expect.stringMatching(/GATEHOUSE_TRUSTED_PROXIES=127\.0\.0\.1 {2}GATEHOUSE_HOST=127\.0\.0\.1/),
    ])
  expect(text('nginx.conf')).toContain('X-Forwarded-For $remote_addr;')
  expect(text('nginx.conf')).toContain('keepalive_timeout 25s;')
  expect(text('nginx.conf')).toContain('large_client_header_buffers 4 16k;')
  expect(text('nginx.conf')).toContain('proxy_buffer_size 16k;')
  expect(text('nginx.conf')).toContain('proxy_buffers 4 16k;')
  expect(text('Caddyfile')).toContain('keepalive 25s')
  const { services, serversTransports } = parse(text('traefik.yaml')).http
  const { serversTransport } = services.gatehouse.loadBalancer
  expect(serversTransports[serversTransport].forwardingTimeouts.idleConnTimeout).toBe('25s')
  expect(services.gatehouse.loadBalancer.healthCheck.path).toBe('/readyz')
  expect(parse(text('prometheus.yaml')).scrape_configs[0].job_name).toBe('gatehouse')
  // With the address of the proxies' examples, Prometheus would not reach the server.
  expect(text('prometheus.yaml')).toContain('GATEHOUSE_HOST and GATEHOUSE_TRUSTED_PROXIES')
})

test('nginx of every distribution loads the example', () => {
  expect(text('nginx.conf')).toContain('listen 443 ssl http2;')
  expect(text('nginx.conf')).not.toMatch(/^ *http2 on;/m)
})

test('nginx refuses a path with a backslash, which the server would read as a slash', () => {
  expect(new URL('http://id.example.com/x\\..\\metrics').pathname).toBe('/metrics')
  const [, quoted = ''] = /if \(\$request_uri ~ "(.+)"\) \{\s+return 400;/.exec(text('nginx.conf')) ?? []
  const refused = new RegExp(quoted.replaceAll('\\\\', '\\'))
  for (const [target, isRefused] of [
    ['/x\\..\\metrics', true],
    ['/api\\v1/admin/users', true],
    ['/metrics', false],
    ['/readyz?a=\\b', false],
  ] as const)
    expect([target, refused.test(target)]).toEqual([target, isRefused])
})

test('the service manager restarts a server until PostgreSQL is back, and waits for a long start', () => {
  for (const path of ['gatehouse.service', '../../../.ci/package/debian/gatehouse.service']) {
    const [before = ''] = text(path).split('[Service]')
    expect(before.split('\n')).toContain('StartLimitIntervalSec=0')
    for (const line of ['Restart=on-failure', 'TimeoutStartSec=infinity'])
      expect([path, text(path).split('\n')]).toEqual([path, expect.arrayContaining([line])])
  }
})

test('R-16 the units let the threads that hash passwords lower their priority', () => {
  for (const path of ['gatehouse.service', '../../../.ci/package/debian/gatehouse.service'])
    expect([path, [...text(path).matchAll(/^SystemCallFilter=(.*)$/gm)].map(([, calls]) => calls)]).toEqual([
      path,
      // systemd reads the lines in order: a later line adds to the list or removes from it.
      ['@system-service', '~@privileged @resources', 'setpriority'],
    ])
})

test('the image and the unit run as an unprivileged user, and the unit requests no capability', () => {
  // Among the libraries that the executable needs is libdl, which busybox images lack.
  expect(text('Dockerfile')).toMatch(/^FROM debian:13-slim$/m)
  expect(text('Dockerfile')).toMatch(/^USER 65532:65532$/m)
  const unit = text('gatehouse.service')
  for (const line of [
    'Type=notify',
    // This user exists even without the service. Files with secrets can be readable for this user alone.
    'User=gatehouse',
    'Group=gatehouse',
    'CapabilityBoundingSet=',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
    'RestartPreventExitStatus=2 78',
  ])
    expect(unit.split('\n')).toContain(line)
})

test('the guide says which capability a unit needs for port 443', () => {
  const guide = text('../../../templates/guide/deployment.md')
  for (const name of ['AmbientCapabilities', 'CapabilityBoundingSet']) {
    expect(text('gatehouse.service')).toMatch(new RegExp(`^${name}=$`, 'm'))
    expect(guide).toContain(`\n${name}=CAP_NET_BIND_SERVICE\n`)
  }
})

test('the service manager gets a message when the server is ready', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const said = join(folder, 'said')
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$NOTIFY_SOCKET $@" >> ${said}\n`, {
    mode: 0o755,
  })
  const server = await serveExecutable({
    PATH: `${folder}:${process.env.PATH}`,
    NOTIFY_SOCKET: '/run/notify',
  })
  // The shell creates the file before it writes the line.
  await until(() => Boolean(statSync(said, { throwIfNoEntry: false })?.size))
  expect(readFileSync(said, 'utf8')).toBe(`/run/notify --ready --pid=${server.pid}\n`)
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})
