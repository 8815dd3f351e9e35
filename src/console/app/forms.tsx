import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { asProblem, callApi, type Problem } from './api.ts'
import { ApiForm } from './api-form.tsx'
import { curlOf } from './curl.ts'
import { Dialog } from './dialogs.tsx'
import { mayOn } from './me.ts'
import { forgetName } from './names.tsx'
import { AsCurl, Refused } from './parts.tsx'
import { useUnsaved } from './router.ts'
import { show } from './toast.tsx'
import { say, words } from './words.ts'

type Values = Record<string, unknown>
const same = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other)

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The fields whose entries the API merges with the stored entries. The API replaces every other field. */
const isMerged = (name: string): boolean => name === 'settings' || name === 'password_policy'

/** Returns the entries of `values` that differ from `before`. A removed entry becomes undefined. */
const changesOf = (before: Values, values: Values): Values =>
  Object.fromEntries(
    Object.keys({ ...before, ...values }).flatMap(name => {
      const [old, value] = [before[name], values[name]]
      if (same(old, value)) return []
      return [[name, isMerged(name) && isObject(old) && isObject(value) ? changesOf(old, value) : value]]
    }),
  )

/**
 * Adds changes to an object. `isDeep` names the fields whose own entries are merged: at the first level all
 * fields, below it those that the API merges.
 */
const withChanges = (values: Values, changes: Values, isDeep = (_: string) => true): Values => {
  const all = Object.entries(changes).map(([name, change]) => {
    const value = values[name]
    const isAdded = isDeep(name) && isObject(value) && isObject(change)
    return [name, isAdded ? withChanges(value, change, isMerged) : change]
  })
  return { ...values, ...Object.fromEntries(all) }
}

/**
 * Returns the fields of `values` that differ from `before`. A changed object contains only the entries that
 * differ.
 */
const deepChangesOf = (before: Values, values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const old = before[name]
      if (same(old, value)) return []
      return [[name, isObject(old) && isObject(value) ? changesOf(old, value) : value]]
    }),
  )

/**
 * Returns the state of a form that changes an object. The PUT of the form has only the changed fields, so
 * other fields keep what other people have saved meanwhile. A field that is an object, such as the settings
 * of an organization, also keeps the entries that were not changed here. `field` names the only field whose
 * inputs have a state of their own (see `version`).
 */
export const useEdit = <T extends object>(
  path: string,
  stored: T,
  etag: string,
  loaded: { set(data: T, etag: string): void },
  field?: keyof T,
) => {
  const [draft, setDraft] = useState<Values>({})
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const version = useRef(0)
  const latest = useRef(draft)
  latest.current = draft
  // A later read of the object, such as after an action of the screen, can find changes of other people. The
  // parts with a state of their own must then be reset.
  const partOf = (object: T): unknown => (field === undefined ? object : object[field])
  const known = useRef(partOf(stored))
  if (!same(known.current, partOf(stored))) version.current++
  known.current = partOf(stored)
  const values = withChanges(stored as Values, draft)
  const changes = deepChangesOf(stored as Values, values)
  /**
   * Returns the body of the PUT. If the API replaces a field, the body contains all its entries: the changed
   * entries, and the other entries of `newest`.
   */
  const bodyOn = (newest: Values): Values => {
    const all = withChanges(newest, changes)
    const body = Object.fromEntries(
      Object.entries(changes).map(([name, change]) => [name, isMerged(name) ? change : all[name]]),
    )
    // If a body with a new address of a user has no `email_verified`, the API stores false.
    return 'email' in body ? { ...body, email_verified: values.email_verified } : body
  }
  const changed = bodyOn(stored as Values)
  const isChanged = Object.keys(changed).length > 0
  useUnsaved(isChanged)
  const keep = (left: Values) => {
    setDraft(left)
    setProblem(undefined)
    if (Object.keys(left).length === 0) version.current++
  }
  const take = ({ data, etag }: { data: T; etag: string }, left: Values) => {
    keep(left)
    known.current = partOf(data)
    forgetName(path)
    loaded.set(data, etag)
  }
  const attempt = async (step: () => Promise<void>): Promise<void> => {
    setBusy(true)
    try {
      await step()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  const save = (body = changed, if_match = etag) =>
    attempt(async () => {
      const answer = await callApi<T>('PUT', path, { body, if_match })
      // The person may have typed while the call ran.
      take(answer, deepChangesOf(draft, latest.current))
      show(words.common.saved)
    })
  return {
    values: values as T,
    set: (change: Partial<T>) =>
      setDraft(draft => withChanges(draft, deepChangesOf(values, change as Values))),
    changed,
    isChanged,
    isBusy,
    problem,
    save: () => save(),
    /** Saves the changes on top of `newest`, which is the object as another person has saved it. */
    keepMine: (newest: Values) => save(bodyOn(newest), '*'),
    /** Discards the changes and shows the object that another person has saved. */
    takeTheirs: () => attempt(async () => take(await callApi<T>('GET', path), {})),
    /**
     * Key of the parts of the form that have a state of their own. A new key resets these parts. The number
     * increases when no change is left after a save or a reset, and when a later read finds a new value of
     * `field`. If no `field` is given, a new value of any field counts.
     */
    version: version.current,
    reset: () => keep({}),
    dismiss: () => setProblem(undefined),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

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

/** Shows the old and the new value of each changed field. */
const Changes = ({ all }: { all: ReturnType<typeof differences> }) => (
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
)

/** Shows the fields that saving would change, and the call that changes them. */
const Difference = (props: { stored: object; values: object; changed: object; path: string }) => {
  const { stored, values, changed, path } = props
  const all = differences(stored, values)
  return (
    <details class="difference">
      <summary>{say(words.code.changes, { count: all.length })}</summary>
      <Changes all={all} />
      <AsCurl text={curlOf('PUT', path, changed)} />
    </details>
  )
}

/**
 * Shows the form of an object. While there are changes, a bar shows the button to save. The bar also shows
 * why saving was refused. If the reason is that another person has changed the object, a dialog asks which
 * values to keep.
 */
export const EditForm = <T extends object>(props: {
  edit: ReturnType<typeof useEdit<T>>
  path: string
  stored: T
  /** True for an object that nobody can change. The form is also fixed if the caller may not change it. */
  isFixed?: boolean
  children: ComponentChildren
}) => {
  const { edit, path, stored, isFixed, children } = props
  const { conflict, common } = words
  const isLocked = isFixed || !mayOn('update', path)
  const current = edit.problem?.status === 412 ? edit.problem.current : undefined
  return (
    <ApiForm method="PUT" path={path} problem={edit.problem} class="form" onSubmit={() => void edit.save()}>
      {isLocked ? <fieldset disabled>{children}</fieldset> : children}
      {edit.isChanged && (
        <div class="save-bar">
          {!current && <Refused problem={edit.problem} />}
          <Difference stored={stored} values={edit.values} changed={edit.changed} path={path} />
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
          <div class="difference">
            <Changes all={differences(stored, current).filter(([path]) => path !== 'updated_at')} />
          </div>
          <div class="dialog-actions">
            <button type="button" disabled={edit.isBusy} onClick={() => void edit.takeTheirs()}>
              {conflict.theirs}
            </button>
            <button
              type="button"
              class="primary"
              disabled={edit.isBusy}
              onClick={() => void edit.keepMine(current)}
            >
              {conflict.mine}
            </button>
          </div>
        </Dialog>
      )}
    </ApiForm>
  )
}
