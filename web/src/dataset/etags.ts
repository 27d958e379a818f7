/** Which ETag each own edit of a dataset replaced by which one. */
export class EtagChain {
  private readonly next = new Map<string, string>();

  /** An edit found the dataset with one ETag, and left it with another one. */
  add(before: string, after: string): void {
    if (before !== after) this.next.set(before, after);
    // A dataset that is as it was before has the same ETag again: the chain ends there.
    this.next.delete(after);
  }

  /** The ETag after all own edits that followed, without any of somebody else between them. */
  newest(etag: string): string {
    let current = etag;
    for (let next = this.next.get(current); next !== undefined; next = this.next.get(current)) current = next;
    return current;
  }
}
