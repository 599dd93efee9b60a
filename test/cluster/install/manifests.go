package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// read returns the objects of all manifests in a folder of the checkout. With
// required, a folder that has none is an error.
func (i installer) read(folder string, required bool) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(i.options.Root, folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if required && len(paths) == 0 {
		return nil, fmt.Errorf("%s has no manifests; make generate writes them", filepath.Join(i.options.Root, folder))
	}
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		more, err := readFile(path)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		// An empty document, such as the one before a leading "---".
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
