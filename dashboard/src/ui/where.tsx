const END_LENGTH = 16;

/** The address of a store: where there is no room for it, its middle is left out, since its end tells it from others. */
export function Where({ address }: { address: string }) {
  const cut = Math.max(0, address.length - END_LENGTH);
  return (
    <span class="where" title={address}>
      <span class="cut">{address.slice(0, cut)}</span>
      <span>{address.slice(cut)}</span>
    </span>
  );
}
