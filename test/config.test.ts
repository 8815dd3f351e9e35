import { expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, loadConfig } from '#src/config.ts'

const file = (name: string, content: string): string => {
  const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), name)
  writeFileSync(path, content)
  return path
}

const refusal = (env: Record<string, string>, path?: string): string => {
  try {
    loadConfig(env, path)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
  }
  throw new Error('nothing was refused')
}

test('RUN-17 without settings each setting has its default', () => {
  const { config, sources, warnings } = loadConfig({})
  expect(config).toMatchObject({
    url: 'http://localhost:8080',
    host: '127.0.0.1',
    port: 8080,
    data_dir: './data',
    admin_client_id: 'gatehouse-admin',
    argon2_memory: 19_456,
    argon2_time: 2,
    access_token_alg: 'ES256',
    id_token_alg: 'RS256',
    trusted_proxies: [],
  })
  expect(config.event_retention).toBeUndefined()
  expect(new Set(Object.values(sources))).toEqual(new Set(['default']))
  expect(warnings).toEqual([])
})

test('RUN-16 with a url the server listens on all addresses unless host is set', () => {
  expect(loadConfig({ GATEHOUSE_URL: 'https://id.example.com' }).config.host).toBe('::')
  expect(loadConfig({ GATEHOUSE_URL: 'https://id.example.com', GATEHOUSE_HOST: '0.0.0.0' }).config.host).toBe(
    '0.0.0.0',
  )
})

test('the environment takes precedence over the file, in YAML and in JSON', () => {
  const yaml = file('a.yaml', 'port: 9000\ntrusted_proxies:\n  - 10.0.0.0/8\n  - ::1\n')
  const { config, sources } = loadConfig({ GATEHOUSE_PORT: '9001' }, yaml)
  expect(config.port).toBe(9001)
  expect(sources.port).toBe('environment')
  expect(config.trusted_proxies).toEqual(['10.0.0.0/8', '::1'])
  expect(sources.trusted_proxies).toBe(`${yaml}:3`)
  const json = { GATEHOUSE_CONFIG: file('a.json', '{"port": 9002}') }
  expect(loadConfig(json).config.port).toBe(9002)
  // A script may pass a variable that is not set.
  expect(() => loadConfig(json, '')).toThrow(new ConfigError('--config: the name of the file is empty.'))
})

test('H-15 outbound_allow is host and port for the default organization or a tenant; the default port is 443', () => {
  const read = (value: string) => loadConfig({ GATEHOUSE_OUTBOUND_ALLOW: value }).config.outbound_allow
  expect(read('IdP.internal, acme=idp.internal:8443,10.0.0.1:080,[::1]:9000, acme=[FD00::1]')).toEqual([
    'idp.internal:443',
    'acme=idp.internal:8443',
    '10.0.0.1:80',
    '[::1]:9000',
    'acme=[fd00::1]:443',
  ])
  for (const value of [
    'https://idp.internal',
    'a:b',
    'a:0',
    'a:65536',
    '::1',
    '*=a',
    'a:*',
    '=a',
    'A_b=c',
    'a/b',
  ])
    expect(() => read(value)).toThrow('GATEHOUSE_OUTBOUND_ALLOW')
})

test('RUN-15 a secret can be read from a file, and no other setting can', () => {
  const secret = file('secret', 'kept in a file\n')
  expect(loadConfig({ GATEHOUSE_ADMIN_CLIENT_SECRET_FILE: secret }).config.admin_client_secret).toBe(
    'kept in a file',
  )
  const spaced = { GATEHOUSE_ADMIN_CLIENT_SECRET_FILE: file('spaced', ' spaced \r\n') }
  expect(loadConfig(spaced).config.admin_client_secret).toBe(' spaced ')
  expect(refusal({ GATEHOUSE_PORT_FILE: secret })).toContain('GATEHOUSE_PORT_FILE: no such setting')
  expect(refusal({ GATEHOUSE_ADMIN_CLIENT_SECRET_FILE: '/nowhere' })).toContain('cannot be read')
  const empty = file('empty', '\n')
  expect(refusal({ GATEHOUSE_ADMIN_CLIENT_SECRET_FILE: empty })).toBe(
    `GATEHOUSE_ADMIN_CLIENT_SECRET: the value is not a text with at least one visible character (environment, file ${empty}).`,
  )
  expect(
    refusal({ GATEHOUSE_ADMIN_CLIENT_SECRET_FILE: secret, GATEHOUSE_ADMIN_CLIENT_SECRET: 'x' }),
  ).toContain('set twice')
})

test.each([
  [{ GATEHOUSE_PORT: '80a' }, 'GATEHOUSE_PORT: "80a" is not a whole number from 0 to 65535 (environment).'],
  [{ GATEHOUSE_PORT: '65536' }, 'GATEHOUSE_PORT: "65536"'],
  [{ GATEHOUSE_URL: 'https://id.example.com/' }, 'GATEHOUSE_URL: "https://id.example.com/"'],
  [{ GATEHOUSE_URL: 'https://id.example.com/auth' }, 'without path'],
  [{ GATEHOUSE_URL: 'ftp://id.example.com' }, 'an http or https address'],
  [{ GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/33' }, 'GATEHOUSE_TRUSTED_PROXIES'],
  [{ GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/8/8' }, 'GATEHOUSE_TRUSTED_PROXIES'],
  [{ GATEHOUSE_WORKERS: '2' }, 'more than 1 needs database_url'],
  [{ GATEHOUSE_LOG_LEVEL: 'x'.repeat(81) }, `GATEHOUSE_LOG_LEVEL: "${'x'.repeat(80)}" is not`],
  [{ GATEHOUSE_LOG_LEVEL: 'loud' }, 'is not one of trace, debug, info, warn, error, silent'],
  [{ GATEHOUSE_ARGON2_MEMORY: '1024' }, 'a whole number from 19456'],
  [{ GATEHOUSE_TLS_CERT: 'a.pem' }, 'set both or neither'],
  [{ GATEHOUSE_ADMIN_USERNAME: 'root' }, 'set all three or none'],
  [{ GATEHOUSE_ADMIN_EMAIL: 'root@example.com' }, 'set all three or none'],
  [{ GATEHOUSE_ADMIN_PASSWORD: 'secret' }, 'set all three or none'],
  [{ GATEHOUSE_MASTER_KEY: Buffer.alloc(33).toString('base64') }, 'must be 32 bytes in base64'],
  [{ GATEHOUSE_MASTER_KEY: 'c2hvcnQ=' }, 'must be 32 bytes in base64'],
  [{ GATEHOUSE_SMTP_URL: 'mail.example.com:25' }, 'smtp://host:port'],
  [{ GATEHOUSE_SMTP_URL: 'smtp:mail.example.com' }, 'smtp://host:port'],
  [{ GATEHOUSE_SMTP_URL: 'https://mail.example.com' }, 'smtp://host:port'],
  [{ GATEHOUSE_DATABASE_URL: 'mysql://localhost/house' }, 'postgres://user:password@host:port/database'],
  [
    { GATEHOUSE_DATABASE_URL: 'postgres://localhost/house?sslmode=verify' },
    'require, verify-ca, verify-full',
  ],
  [{ GATEHOUSE_DATABASE_URL: 'postgres://localhost' }, 'postgres://user:password@host:port/database'],
  [{ GATEHOUSE_DATABASE_URL: 'postgres://a,b:5432/house' }, 'one host'],
  [{ GATEHOUSE_DATABASE_URL: 'postgres://a:5432,b:5432/house' }, 'one host'],
  [{ GATEHOUSE_DATABASE_URL: 'postgres://localhost/%zz' }, 'percent-encoded parts'],
  [{ GATEHOUSE_DATABASE_URL: 'postgres://me:5%zz@localhost/house' }, 'percent-encoded parts'],
  [{ GATEHOUSE_OTEL_TRACES_SAMPLER_ARG: '1.5' }, 'a number from 0 to 1'],
  [{ GATEHOUSE_MAIL_FROM: 'nobody' }, 'an address such as id@example.com'],
  [{ GATEHOUSE_OTEL_EXPORTER_OTLP_ENDPOINT: 'http://:key@collector:4318' }, 'without credentials or query'],
  [{ GATEHOUSE_OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/?' }, 'without credentials or query'],
  [{ GATEHOUSE_EVENT_RETENTION: '90' }, 'a whole number followed by m, h, d or w'],
  [{ GATEHOUSE_COLOUR: 'red' }, 'GATEHOUSE_COLOUR: no such setting (environment)'],
])('a wrong setting is refused in one line with the allowed values: %o', (env, expected) => {
  const message = refusal(env)
  expect(message).toContain(expected)
  expect(message).not.toContain('\n')
})

test('a sender with a line break, which would add a header to each mail, is refused', () => {
  const mail_from = 'Example\r\nBcc: all <id@example.com>'
  expect(refusal({ GATEHOUSE_MAIL_FROM: mail_from })).toContain('an address such as id@example.com')
})

test('a refused secret is not shown', () => {
  expect(refusal({ GATEHOUSE_MASTER_KEY: 'bm90IGxvbmc=' })).not.toContain('bm90IGxvbmc=')
})

test('an unknown name in the file is refused with the name of the file', () => {
  const path = file('a.yaml', 'prot: 1\n')
  expect(refusal({}, path)).toContain(`prot: no such setting (${path}:1)`)
  expect(refusal({}, file('c.yaml', 'smtp-url: x\n'))).toContain('Did you mean smtp_url?')
  expect(refusal({}, file('b.yaml', '- a list\n'))).toContain('must be a map of settings')
  expect(refusal({}, '/nowhere.yaml')).toContain('/nowhere.yaml')
})

test('RUN-15 an empty secret in the file is refused', () => {
  const path = file('a.yaml', 'metrics_token: ""\n')
  expect(refusal({}, path)).toContain(
    `metrics_token: the value is not a text with at least one visible character (${path}:1)`,
  )
  expect(refusal({}, file('b.yaml', 'metrics_token:\n'))).toContain('metrics_token: must be a string')
})

test.each(['0012345678', '12e3', '0x10', '1.50', '0o17', 'true', '2026-01-31'])(
  'a secret %s in the file is read as it is written',
  token => {
    const read = (content: string) => loadConfig({}, file('a.yaml', content)).config.metrics_token
    expect(read(`metrics_token: ${token}\n`)).toBe(token)
    expect(read(`metrics_token: "${token}"\n`)).toBe(token)
  },
)

test.each(['', 'POSTGRES_'])('service links of a container named gatehouse %s are ignored', prefix => {
  const links = {
    SERVICE_HOST: '10.0.0.1',
    SERVICE_PORT: '5432',
    SERVICE_PORT_HTTP: '5432',
    PORT: 'tcp://10.0.0.1:5432',
    PORT_5432_TCP: 'tcp://10.0.0.1:5432',
    PORT_5432_TCP_PROTO: 'tcp',
    PORT_5432_TCP_PORT: '5432',
    PORT_5432_TCP_ADDR: '10.0.0.1',
  }
  const env = Object.entries(links).map(([name, value]) => [`GATEHOUSE_${prefix}${name}`, value])
  const { config, warnings } = loadConfig(Object.fromEntries(env))
  expect(config).toEqual(loadConfig({}).config)
  expect(warnings).toEqual(
    env.map(([name]) => `${name} looks like a container's service link and is ignored.`),
  )
  expect(refusal({ [`GATEHOUSE_${prefix}PORT_5432`]: '1' })).toContain('no such setting')
})

test('a value of OpenTelemetry that the server cannot use is ignored, and refused with the prefix', () => {
  const env = {
    OTEL_TRACES_SAMPLER: 'parentbased_jaeger_remote',
    OTEL_TRACES_SAMPLER_ARG: 'endpoint=http://localhost:14250,pollingIntervalMs=5000',
    OTEL_EXPORTER_OTLP_HEADERS: 'not a header',
  }
  const path = file('a.yaml', 'otel_traces_sampler: always_off\n')
  const { config, sources, warnings } = loadConfig({ ...env, OTEL_SERVICE_NAME: 'house' }, path)
  expect(config).toMatchObject({ otel_traces_sampler: 'always_off', otel_traces_sampler_arg: 1 })
  expect(config.otel_exporter_otlp_headers).toBeUndefined()
  expect(config.otel_service_name).toBe('house')
  expect(sources.otel_traces_sampler_arg).toBe('default')
  expect(warnings).toEqual([
    expect.stringMatching(/^OTEL_TRACES_SAMPLER: "parentbased_jaeger_remote" is not one of .*is ignored\.$/),
    expect.stringMatching(/^OTEL_TRACES_SAMPLER_ARG: "endpoint=.*" is not a number from 0 to 1/),
    expect.stringMatching(/^OTEL_EXPORTER_OTLP_HEADERS: the value is not a comma-separated list/),
  ])
  for (const [name, value] of Object.entries(env))
    expect(refusal({ [`GATEHOUSE_${name}`]: value })).toStartWith(`GATEHOUSE_${name}: `)
})

test('with a certificate the default url is https, and it omits the default port', () => {
  const urlOf = (env: Record<string, string>) => loadConfig(env).config.url
  const tls = { GATEHOUSE_TLS_CERT: 'cert.pem', GATEHOUSE_TLS_KEY: 'key.pem' }
  expect(urlOf(tls)).toBe('https://localhost:8080')
  expect(urlOf({ ...tls, GATEHOUSE_PORT: '443' })).toBe('https://localhost')
  expect(urlOf({ ...tls, GATEHOUSE_PORT: '0' })).toBe('https://localhost:0')
  expect(urlOf({ ...tls, GATEHOUSE_URL: 'https://id.example.com' })).toBe('https://id.example.com')
  expect(urlOf({ GATEHOUSE_PORT: '80' })).toBe('http://localhost')
})

test('one of smtp_url and mail_from without the other gives a warning', () => {
  const smtp = { GATEHOUSE_SMTP_URL: 'smtp://localhost:25' }
  const sender = { GATEHOUSE_MAIL_FROM: 'id@example.com' }
  expect(loadConfig(smtp).warnings).toEqual(['No mail is sent: mail_from is missing.'])
  expect(loadConfig(sender).warnings).toEqual(['No mail is sent: smtp_url is missing.'])
  expect(loadConfig({ ...smtp, ...sender }).warnings).toEqual([])
})
