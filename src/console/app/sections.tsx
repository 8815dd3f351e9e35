import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { fragment, go } from './router.ts'

/** A part of a long form. A URL with the fragment `id` opens it. */
interface Section {
  id: string
  label: string
  content: ComponentChildren
}

/**
 * Shows one section of a form at a time, chosen by tabs. Hidden sections stay in the form, so their entries
 * are kept and one button saves all sections.
 */
export const Sections = (props: { label: string; sections: readonly (Section | false)[] }) => {
  const sections = props.sections.filter(section => section !== false)
  const ids = sections.map(({ id }) => id)
  const open = ids.includes(fragment.value) ? fragment.value : (ids[0] ?? '')
  useLayoutEffect(() => document.getElementById(`tab-${open}`)?.scrollIntoView({ block: 'nearest' }), [open])
  const move = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = Number(event.key === 'ArrowRight') - Number(event.key === 'ArrowLeft')
    if (step === 0) return
    const next = ids.at((ids.indexOf(open) + (document.dir === 'rtl' ? -step : step)) % ids.length)
    go(`#${next}`, { replace: true })
    event.currentTarget.querySelector<HTMLElement>(`[href="#${next}"]`)?.focus()
  }
  return (
    <>
      <div class="sections" role="tablist" aria-label={props.label} onKeyDown={move}>
        {sections.map(({ id, label }) => (
          <a
            key={id}
            id={`tab-${id}`}
            role="tab"
            href={`#${id}`}
            aria-selected={id === open}
            aria-controls={`panel-${id}`}
            tabIndex={id === open ? 0 : -1}
          >
            {label}
          </a>
        ))}
      </div>
      {sections.map(({ id, content }) => (
        // The id of the panel differs from the fragment. Otherwise the browser would scroll to the panel,
        // which would move the tabs out of view.
        <div
          key={id}
          id={`panel-${id}`}
          class="stack"
          role="tabpanel"
          aria-labelledby={`tab-${id}`}
          data-section={id}
          hidden={id !== open}
        >
          {content}
        </div>
      ))}
    </>
  )
}
