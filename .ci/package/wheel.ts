import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Build } from './build.ts'
import { names, pythonVersion } from './names.ts'
import { bytesOf, type Entry, zip } from './pack.ts'
import type { Target } from './targets.ts'

/**
 * Writes a wheel that contains the executable as a script, and the pytest fixtures:
 * https://packaging.python.org/en/latest/specifications/binary-distribution-format/
 */
export const wheel = async (build: Build, target: Target, executable: string): Promise<void> => {
  const { license, description } = build.project
  const version = pythonVersion(build.project.version)
  const stem = `${names.pypi.replaceAll('-', '_')}-${version}`
  const info = `${stem}.dist-info`
  const tag = `py3-none-${target.wheel}`
  const entries: Entry[] = [
    { path: 'gatehouse_pytest.py', content: { from: join(import.meta.dir, 'gatehouse_pytest.py') } },
    {
      path: `${stem}.data/scripts/${executable.split('/').at(-1)}`,
      content: { from: executable },
      mode: 0o755,
    },
    {
      path: `${info}/METADATA`,
      content: `Metadata-Version: 2.4
Name: ${names.pypi}
Version: ${version}
Summary: ${description}
License-Expression: ${license}
License-File: LICENSE
Requires-Python: >=3.9
Description-Content-Type: text/markdown

${await Bun.file(join(build.root, 'README.md')).text()}`,
    },
    {
      path: `${info}/WHEEL`,
      content: `Wheel-Version: 1.0\nGenerator: ${names.deb} (${version})\nRoot-Is-Purelib: false\nTag: ${tag}\n`,
    },
    // https://docs.pytest.org/en/stable/how-to/writing_plugins.html#making-your-plugin-installable-by-others
    { path: `${info}/entry_points.txt`, content: '[pytest11]\ngatehouse = gatehouse_pytest\n' },
    { path: `${info}/licenses/LICENSE`, content: { from: join(build.root, 'LICENSE') } },
  ]
  const rows = await Promise.all(
    entries.map(async entry => {
      const bytes = await bytesOf(entry)
      return `${entry.path},sha256=${createHash('sha256').update(bytes).digest('base64url')},${bytes.length}`
    }),
  )
  const record = { path: `${info}/RECORD`, content: `${[...rows, `${info}/RECORD,,`].join('\n')}\n` }
  await Bun.write(join(build.out, `${stem}-${tag}.whl`), await zip([...entries, record]))
}
