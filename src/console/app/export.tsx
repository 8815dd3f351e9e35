import { useState } from 'preact/hooks'
import { asProblem, type Problem, read, withQuery } from './api.ts'
import { Dialog } from './dialogs.tsx'
import type { PageOf } from './hooks.ts'
import { Refused } from './parts.tsx'
import { show } from './toast.tsx'
import { say, words } from './words.ts'

/**
 * Maximum exported rows. The screens show an exact total up to the same number (`shownOf`), so a list with an
 * exact total is exported completely.
 */
const MOST = 10_000

/**
 * Returns a value as a CSV cell that no spreadsheet treats as a formula.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
const cellOf = (value: unknown): string => {
  const text = Array.isArray(value)
    ? value.join(' ')
    : typeof value === 'object' && value !== null
      ? JSON.stringify(value)
      : String(value ?? '')
  const safe = /^[=+\-@＝＋－＠\t\r\n]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const save = (file: string, rows: unknown[][]): void => {
  const text = rows.map(row => `${row.map(cellOf).join(',')}\r\n`).join('')
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = file
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Saves the rows of a filtered list as CSV (RFC 4180). */
export const ExportButton = (props: {
  path: string
  filters: Record<string, string | number | undefined>
  columns: readonly string[]
  file: string
}) => {
  const text = words.export
  const [count, setCount] = useState<number>()
  const [problem, setProblem] = useState<Problem>()
  const run = async (): Promise<void> => {
    const rows: unknown[][] = [[...props.columns]]
    try {
      let cursor: string | undefined
      do {
        setCount(rows.length - 1)
        const page = await read<PageOf<Record<string, unknown>>>(
          withQuery(props.path, { ...props.filters, limit: 100, cursor }),
        )
        rows.push(...page.data.map(item => props.columns.map(name => item[name])))
        cursor = page.pagination.next_cursor
      } while (cursor && rows.length <= MOST)
      save(props.file, rows)
      show(cursor ? say(text.cut, { count: rows.length - 1 }) : say(text.done, { count: rows.length - 1 }))
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setCount(undefined)
    }
  }
  return (
    <>
      <button type="button" disabled={count !== undefined} onClick={() => void run()}>
        {count === undefined ? text.action : say(text.running, { count })}
      </button>
      {problem && (
        <Dialog title={text.action} onClose={() => setProblem(undefined)}>
          <Refused problem={problem} />
          <div class="dialog-actions">
            <button type="button" onClick={() => setProblem(undefined)}>
              {words.common.close}
            </button>
          </div>
        </Dialog>
      )}
    </>
  )
}
