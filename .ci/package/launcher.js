#!/usr/bin/env node
// Starts the executable of the platform package. No install script is needed, so --ignore-scripts works too.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { constants } from 'node:os'

const isMusl = () => {
  const { header } = process.report.getReport()
  return !header.glibcVersionRuntime
}
const { platform, arch } = process
const system = platform === 'win32' ? 'windows' : platform
const target = `${system}-${arch}${platform === 'linux' && isMusl() ? '-musl' : ''}`
const file = platform === 'win32' ? 'gatehouse.exe' : 'gatehouse'

let executable
try {
  executable = createRequire(import.meta.url).resolve(`{{name}}-${target}/${file}`)
} catch {
  console.error(
    `gatehouse: the package {{name}}-${target} is not installed. Install again without --omit=optional; platforms: linux (x64, arm64; glibc, musl), macOS (arm64), Windows (x64).`,
  )
  process.exit(1)
}
const child = spawn(executable, process.argv.slice(2), { stdio: 'inherit' })
// A supervisor signals only the launcher, so the launcher passes each signal on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', ({ code }) => {
  console.error(`gatehouse: ${executable} cannot be started (${code}).`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
