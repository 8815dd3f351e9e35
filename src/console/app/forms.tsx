import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { asProblem, callApi, type Problem } from './api.ts'
import { ApiForm } from './api-form.tsx'
import { curlOf } from './curl.ts'
import { Dialog } from './dialogs.tsx'
import { forgetName } from './names.tsx'
import { AsCurl, Refused } from './parts.tsx'
import { useUnsaved } from './router.ts'
import { show } from './toast.tsx'
import { say, words } from './words.ts'

type Values = Record<string, unknown>
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/**
 * Returns the state of a form that changes an object. The PUT of the form has only the changed fields, so
 * that other fields keep what other people have saved meanwhile.
 */
export const useEdit = <T extends object>(
  path: string,
  stored: T,
  etag: string,
  loaded: { set(data: T, etag: string): void; reload(): void },
) => {
  const [draft, setDraft] = useState<Partial<T>>({})
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const [version, setVersion] = useState(0)
  const clear = () => {
    setDraft({})
    setProblem(undefined)
    setVersion(version + 1)
  }
  const changed = Object.fromEntries(
    Object.entries(draft).filter(([name, value]) => !same(value, (stored as Values)[name])),
  ) as Partial<T>
  const isChanged = Object.keys(changed).length > 0
  useUnsaved(isChanged)
  const save = async (if_match = etag): Promise<void> => {
    setBusy(true)
    try {
      const answer = await callApi<T>('PUT', path, { body: changed, if_match })
      clear()
      forgetName(path)
      loaded.set(answer.data, answer.etag)
      show(words.common.saved)
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  return {
    values: { ...stored, ...draft },
    set: (change: Partial<T>) => setDraft({ ...draft, ...change }),
    changed,
    isChanged,
    isBusy,
    problem,
    save,
    /**
     * Increases when changes are saved or discarded. Parts of the form with a state of their own use it as
     * their `key`, so that an increase resets them.
     */
    version,
    reset: clear,
    /** Discards the changes and loads the object that another person has saved. */
    takeTheirs: () => {
      loaded.reload()
      clear()
    },
    dismiss: () => setProblem(undefined),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the path, old value and new value of each changed field. */
const differences = (before: unknown, after: unknown, path = ''): [path: string, unknown, unknown][] => {
  if (same(before, after)) return []
  if (!isObject(before) || !isObject(after)) return [[path, before, after]]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name =>
    differences(before[name], after[name], path === '' ? name : `${path}.${name}`),
  )
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)

/** Shows one value of a difference. A list is shown with one item per line. */
const Side = ({ value }: { value: unknown }) => {
  if (isEmpty(value)) return <em class="hint">{words.code.nothing}</em>
  return <>{(Array.isArray(value) ? value : [value]).map(item => text(item)).join('\n')}</>
}

/** Shows the fields that saving would change, and the call that changes them. */
const Difference = ({ stored, changed, path }: { stored: object; changed: object; path: string }) => {
  const before = Object.fromEntries(Object.keys(changed).map(name => [name, (stored as Values)[name]]))
  const all = differences(before, changed)
  return (
    <details class="difference">
      <summary>{say(words.code.changes, { count: all.length })}</summary>
      <dl>
        {all.map(([path, old, value]) => (
          <div key={path}>
            <dt>
              <code>{path}</code>
            </dt>
            <dd>
              <del>
                <Side value={old} />
              </del>
              <ins>
                <Side value={value} />
              </ins>
            </dd>
          </div>
        ))}
      </dl>
      <AsCurl text={curlOf('PUT', path, changed)} />
    </details>
  )
}

/**
 * Shows the form of an object. While there are changes, a bar shows the button to save and, if saving was
 * refused, the reason. A dialog is shown when another person has changed the object.
 */
export const EditForm = <T extends object>(props: {
  edit: ReturnType<typeof useEdit<T>>
  path: string
  stored: T
  children: ComponentChildren
}) => {
  const { edit, path, stored } = props
  const { conflict, common } = words
  const current = edit.problem?.status === 412 ? edit.problem.current : undefined
  return (
    <ApiForm method="PUT" path={path} problem={edit.problem} class="form" onSubmit={() => void edit.save()}>
      {props.children}
      {edit.isChanged && (
        <div class="save-bar">
          {!current && <Refused problem={edit.problem} />}
          <Difference stored={stored} changed={edit.changed} path={path} />
          <button type="button" onClick={edit.reset}>
            {common.cancel}
          </button>
          <button type="submit" class="primary" disabled={edit.isBusy}>
            {common.save}
          </button>
        </div>
      )}
      {current && (
        <Dialog title={conflict.title} onClose={edit.dismiss}>
          <p>{conflict.text}</p>
          <dl class="facts">
            {Object.keys(current)
              .filter(name => name !== 'updated_at' && !same(current[name], (stored as Values)[name]))
              .map(name => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{text(current[name])}</dd>
                </div>
              ))}
          </dl>
          <div class="dialog-actions">
            <button type="button" onClick={edit.takeTheirs}>
              {conflict.theirs}
            </button>
            <button type="button" class="primary" onClick={() => void edit.save('*')}>
              {conflict.mine}
            </button>
          </div>
        </Dialog>
      )}
    </ApiForm>
  )
}
