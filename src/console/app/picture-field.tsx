import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Refusals } from './fields.tsx'
import { Icon } from './icons.tsx'
import { words } from './words.ts'

const text = words.looks

/** Edits a picture. A chosen file is passed to `onValue` as a data URI. */
export const PictureField = (props: {
  name: string
  label: string
  hint: string
  /** True for a picture on dark pages. */
  isDark?: boolean
  /** URL of the stored picture, or the data URI of a chosen file. */
  value: string | null | undefined
  onValue(value: string | null): void
}) => {
  const { name, value, onValue } = props
  const input = useRef<HTMLInputElement>(null)
  const [isUnreadable, setUnreadable] = useState(false)
  const clear = () => {
    if (input.current) input.current.value = ''
  }
  // The input names a file only while the form has the picture of this file. Otherwise it would name a
  // removed picture, and the person could not choose the same file again.
  useLayoutEffect(() => {
    if (!value?.startsWith('data:')) clear()
  }, [value])
  const read = (file: File) => {
    setUnreadable(false)
    const reader = new FileReader()
    reader.onload = () => onValue(String(reader.result))
    reader.onerror = () => {
      clear()
      setUnreadable(true)
    }
    reader.readAsDataURL(file)
  }
  return (
    <div class="field">
      <label for={name}>{props.label}</label>
      <div class={props.isDark ? 'picture dark' : 'picture'}>
        {value ? <img src={value} alt="" /> : <span class="hint">{text.noPicture}</span>}
        {value && (
          <button type="button" onClick={() => onValue(null)}>
            <Icon name="cross" /> {text.remove}
          </button>
        )}
      </div>
      <input
        ref={input}
        id={name}
        type="file"
        accept="image/png,image/svg+xml,image/webp,image/jpeg"
        aria-describedby={`${name}-about`}
        onChange={event => {
          const [file] = event.currentTarget.files ?? []
          if (file) read(file)
        }}
      />
      <div id={`${name}-about`}>
        <p class="hint">{props.hint}</p>
        {isUnreadable && (
          <p class="field-error" role="alert">
            {text.unreadable}
          </p>
        )}
        <Refusals name={name} />
      </div>
    </div>
  )
}
